"""The program of every stack: read the settings, build the components, export what people ask for."""

import pulumi

from infra.components import assembly
from infra.components.buckets import Buckets
from infra.components.cost_guard import CostGuard
from infra.components.head_node import HeadNode
from infra.components.identity import Identity
from infra.components.image_registry import ImageRegistry
from infra.components.model_volume import ModelVolume
from infra.components.network import Network
from infra.components.services import Services
from infra.components.site import google_provider
from infra.components.tpu_slice import TpuSlice
from infra.settings import read_settings

config = pulumi.Config("spotrail")
settings = read_settings(config)
google = google_provider(assembly.site(settings), settings.budget.quota_project)
services = Services("services", assembly.services(settings), pulumi.ResourceOptions(provider=google))


def after(*needed: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(provider=google, depends_on=[services, *needed])


buckets = Buckets("buckets", assembly.buckets(settings), after())
identity = Identity("identity", assembly.identity(settings, buckets), after())
network = Network("network", assembly.network(settings, identity), after())
registry = ImageRegistry("registry", assembly.registry(settings, identity), after())
head = HeadNode("head", assembly.head(settings, network, identity), after(identity, network, registry))
volume = ModelVolume(assembly.volume_name(settings), assembly.volume(settings, identity), after(identity, network))
slices = {
    name: TpuSlice(name, args, after(identity, registry, head))
    for name, args in assembly.slices(settings, network, identity, volume)
}
CostGuard("guard", assembly.guard(settings, buckets, config.get_secret("slack_token")), after())
for name, value in assembly.outputs(buckets, identity, registry, head, volume, slices).items():
    pulumi.export(name, value)
