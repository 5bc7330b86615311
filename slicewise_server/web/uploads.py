"""Handler of files in requests: no page and no operation takes files."""

from typing import Any

from django.core.files.uploadhandler import FileUploadHandler

from slicewise_server.web.request_errors import FilesRefused


class RefusingFiles(FileUploadHandler):
    """Upload handler that stops reading a form at the first file: Django's own handlers write a
    file to disk first, also for senders who are not signed in.
    """

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        raise FilesRefused("The form holds a file, and no file is taken here.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes | None:
        raise FilesRefused("No file is taken here.")

    def file_complete(self, file_size: int) -> None:
        raise FilesRefused("No file is taken here.")
