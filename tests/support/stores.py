"""An object store of the tests' own (moto's, on loopback), which can kill whoever asks it."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.request import urlopen

import pyarrow.fs as pafs
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

CHANGES = {"PUT", "POST", "DELETE"}


@dataclass
class Store:
    """A running store: whoever sends the request number ``die_at`` that changes something is killed.

    Before the store has heard of it, or (``after``) when it was done and is not answered.
    """

    port: int = 0
    pid: int | None = None
    die_at: int = -1
    after: bool = False
    refuse_from: int | None = None
    silent: bool = False
    """Whether nothing is answered from then on, not even whether something is there."""
    changes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def environment(self) -> dict[str, str]:
        """What tells any process of it."""
        return {
            "AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "open-sesame",
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

    def files(self) -> pafs.FileSystem:
        """The store as a filesystem."""
        return pafs.S3FileSystem(
            access_key="tester", secret_key="open-sesame", region="us-east-1", scheme="http",  # noqa: S106
            endpoint_override=f"127.0.0.1:{self.port}", allow_bucket_creation=True,
        )  # fmt: skip

    def names(self, bucket: str = "bucket") -> list[str]:
        """All files in a bucket."""
        found = self.files().get_file_info(pafs.FileSelector(bucket, recursive=True))
        return sorted(one.path.removeprefix(f"{bucket}/") for one in found if one.is_file)

    def put(self, path: str, content: bytes) -> None:
        with self.files().open_output_stream(path) as file:
            file.write(content)

    def plant(self, bucket: str, key: str, content: bytes) -> None:
        """Under a key that no client sends as it is: one with ``..`` in it."""
        (backend,) = s3_backends["123456789012"].values()
        backend.put_object(bucket, key, content)

    def get(self, path: str) -> bytes:
        with self.files().open_input_stream(path) as file:
            return bytes(file.read())

    def watched(self, app: Any) -> Any:
        """An application that counts, kills and refuses."""

        def answer(environ: dict[str, Any], start: Any) -> Any:
            number = -1
            if environ["REQUEST_METHOD"] in CHANGES:
                with self.lock:
                    number, self.changes = self.changes, self.changes + 1
            refused = self.refuse_from is not None and number >= self.refuse_from
            over = self.silent and self.refuse_from is not None and self.changes > self.refuse_from
            if refused or over:
                start("403 Forbidden", [("Content-Type", "application/xml")])
                return [b"<Error><Code>AccessDenied</Code><Message>not now</Message></Error>"]
            dies = self.pid is not None and 0 <= number == self.die_at
            done = list(app(environ, start)) if self.after or not dies else [b""]
            if dies and self.pid is not None:
                os.kill(self.pid, signal.SIGKILL)
                if not self.after:
                    start("503 Slow Down", [])
            return done

        return answer


@contextmanager
def started() -> Iterator[Store]:
    """A store with an empty bucket."""
    store = Store()
    app = store.watched(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    store.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        urlopen(f"http://127.0.0.1:{store.port}/moto-api/reset", data=b"").close()
        store.files().create_dir("bucket")
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
