"""The scripts of a stack, rendered from its settings: what the head, the TPU hosts and the two jobs run."""

from __future__ import annotations

from infra.components.buckets import MODELS
from infra.components.identity import Account, email_of
from infra.components.image_registry import repository_id
from infra.components.model_volume import JobScript
from infra.components.network import subnetwork_name
from infra.components.site import Site
from infra.plan import names, startup
from infra.plan.machines import STAGING_TYPE
from infra.plan.slices import SlicePlan
from infra.settings import Settings


def head(settings: Settings) -> str:
    """Startup script of the Ray head."""
    return startup.render_head(
        startup.HeadStartup(ray_version=settings.head.ray_version, python_index=_python_index(settings))
    )


def worker(settings: Settings, plan: SlicePlan, *, image: str, head_address: str, model_device: str) -> str:
    """Startup script of the hosts of a slice. `model_device` is empty where they mount no model."""
    values = startup.WorkerStartup(
        role=plan.role,
        slice_name=plan.cloud_name,
        accelerator_type=plan.shape.accelerator_type,
        chips_per_host=plan.shape.chips_per_host,
        hosts=plan.shape.hosts,
        head_address=head_address,
        ray_version=settings.head.ray_version,
        python_index=_python_index(settings),
        apt_index=startup.apt_index(
            settings.region, settings.project, repository_id(settings.env, settings.registry.apt_mirror)
        ),
        image=startup.image_reference(
            image,
            region=settings.region,
            project=settings.project,
            registry=repository_id(settings.env, settings.registry.name),
        ),
        port=settings.serving.port,
        model_device=model_device,
        model_label=settings.model.name,
        model_sha256=settings.model.manifest_sha256 if model_device else "",
    )
    return startup.render_worker(values)


def fill(settings: Settings, where: Site) -> JobScript:
    """Script of the job that fills the staging disk."""
    model, hydration = settings.model, settings.hydration
    version = (settings.env, model.name, model.manifest_sha256)
    hydrate = startup.HydrateStartup(
        bucket=names.bucket_name(settings.project, settings.env, MODELS),
        path=model.path,
        manifest_sha256=model.manifest_sha256,
    )
    seconds = hydration.timeout_minutes * 60
    subnetwork = subnetwork_name(settings.env, settings.region)
    values = startup.FillJob(
        project=settings.project,
        zone=settings.zone,
        staging_disk=names.staging_disk_name(*version),
        hydrator=names.hydrator_name(*version),
        size_gib=model.size_gib,
        staging_type=STAGING_TYPE,
        staging_iops=hydration.staging_iops,
        staging_throughput=hydration.staging_throughput,
        machine=hydration.machine,
        boot_disk_type=hydration.boot_disk_type,
        boot_disk_gib=hydration.boot_disk_gib,
        boot_image=hydration.boot_image,
        subnetwork=f"projects/{settings.project}/regions/{settings.region}/subnetworks/{subnetwork}",
        service_account=email_of(Account.HYDRATOR, where),
        labels=where.labels_with(role="hydrate"),
        timeout_seconds=seconds,
        hydrate_script=startup.render_hydrate(hydrate),
    )
    return JobScript(text=startup.render_fill(values), timeout_seconds=seconds)


def clean(settings: Settings) -> JobScript:
    """Script of the job that removes the staging disk."""
    version = (settings.env, settings.model.name, settings.model.manifest_sha256)
    values = startup.CleanJob(
        project=settings.project,
        zone=settings.zone,
        staging_disk=names.staging_disk_name(*version),
        snapshot=names.snapshot_name(*version),
    )
    return JobScript(text=startup.render_clean(values), timeout_seconds=values.timeout_seconds)


def _python_index(settings: Settings) -> str:
    mirror = repository_id(settings.env, settings.registry.python_mirror)
    return startup.python_index(settings.region, settings.project, mirror)
