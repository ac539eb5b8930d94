"""`targetdp request`: what an official asks for, written, shown and signed."""

from pathlib import Path
from typing import Annotated

import typer

from targetdp.cli._console import KeyFile, emit, must_be_free, save_new, tell

app = typer.Typer(help="What an official asks a data holder for.", no_args_is_help=True)


@app.command()
def sign(
    request: Annotated[Path, typer.Argument(help="the request (TOML)")],
    *,
    output: Annotated[Path, typer.Option("--out", help="the signed request to write")],
    key: KeyFile = None,
    force: Annotated[bool, typer.Option("--force", help="replace a file that exists")] = False,
) -> None:
    """Sign a request with your own key, so that the data holder knows whose it is."""
    from targetdp.release import SigningKey, default_key_path, read_request

    must_be_free("out", output, force=force)
    asked = read_request(request)
    opened = SigningKey.open(key or default_key_path())
    save_new("request", output, asked.signed(opened).text(), force=force)
    tell(f"signed with key {opened.fingerprint} → {output}; the data holder must know your key: targetdp key")


@app.command()
def show(
    request: Annotated[Path, typer.Argument(help="the request (TOML)")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of words")] = False,
) -> None:
    """Say in words what a request asks for, and whether its signature fits."""
    from targetdp.release import describe_request, read_request

    asked = read_request(request)
    if as_json:
        emit(asked.model_dump(mode="json") | {"sha256": asked.sha256, "signer": asked.signer})
        return
    for line in describe_request(asked):
        emit(line)
