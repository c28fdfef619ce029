"""The serving image: linear attention, so that token one million costs what token one did.

    __main__, settings, assembly    the command: from its options to an engine that has made a token
    http/                           sockets, routes, streams, probes, metrics; the life of a server
    protocol/                       OpenAI's shapes, read and written: pure functions
    text/                           tokens to text, stop strings, one answer
    scheduling/                     who is answered when; what a listener hears
    state_cache/                    states of prompts that were read before
    engine/                         slots of state on a device, or on several; the only room that computes
    weights/                        safetensors, plans of reading, sources
    memory_wall, weights_plan, economics/    what serving costs, without JAX: the commands of scripts/
    testing                         an engine whose tokens a reader computes by hand

Between `scheduling` and what drives it stands `engine/abstract_engine.py`: what an engine is asked.
"""
