"""Facets of jobs: the declaration and the source code of a producer."""

from collections.abc import Mapping

from openlineage.client import facet_v2
from openlineage.client.facet_v2 import (
    documentation_job,
    job_type_job,
    ownership_job,
    source_code_job,
    tags_job,
)

from slicewise.declaring import ProducerSpec
from slicewise.texts import masked_text
from slicewise_server.lineage.dataset_facts import TAG_SOURCE, producer

LANGUAGE = "PYTHON"

JobFacets = Mapping[str, facet_v2.JobFacet]


def job_facets(spec: ProducerSpec, source: str) -> JobFacets:
    """Return the facets of the job of a producer, by name. Secrets in the source are masked."""
    facets: dict[str, facet_v2.JobFacet | None] = {
        "jobType": job_type_job.JobTypeJobFacet(
            processingType="BATCH", integration="SLICEWISE", jobType="ASSET", producer=producer()
        ),
        "sourceCode": source_code_job.SourceCodeJobFacet(
            language=LANGUAGE, sourceCode=masked_text(source), producer=producer()
        ),
        "documentation": documentation_job.DocumentationJobFacet(
            description=spec.description, producer=producer()
        )
        if spec.description
        else None,
        "ownership": ownership_job.OwnershipJobFacet(
            owners=[ownership_job.Owner(name=owner) for owner in spec.owners], producer=producer()
        )
        if spec.owners
        else None,
        "tags": tags_job.TagsJobFacet(
            tags=[
                tags_job.TagsJobFacetFields(key=tag, value="true", source=TAG_SOURCE)
                for tag in spec.tags
            ],
            producer=producer(),
        )
        if spec.tags
        else None,
    }
    return {name: facet for name, facet in facets.items() if facet is not None}
