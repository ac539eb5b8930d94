from targetdp.cli._main import app as app
from targetdp.cli._main import main as main
