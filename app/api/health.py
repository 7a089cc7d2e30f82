"""Whether the process answers."""

from fastapi import APIRouter

router = APIRouter(tags=["operation"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process is up and answers."""
    return {"status": "ok"}
