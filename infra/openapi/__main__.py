"""`python -m infra.openapi` writes the document that the API serves."""

from infra.openapi.document import FILE, written

FILE.write_text(written(), encoding="utf-8")
print(f"wrote {FILE.name}, {FILE.stat().st_size} bytes")
