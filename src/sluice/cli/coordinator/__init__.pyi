from .operations import app
from .waivers import removal_payloads, sign_offs, waiver_line, waiver_payloads

__all__ = ["app", "removal_payloads", "sign_offs", "waiver_line", "waiver_payloads"]
