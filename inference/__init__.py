"""The serving image: linear attention, so that token one million costs what token one did."""
