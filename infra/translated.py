"""The template as CloudFormation gets it.

    .venv-sam/bin/python infra/translated.py [--release DIGEST] [NAME=VALUE ...]

Runs in the SAM CLI's environment, whose translator is the one that AWS runs. Prints JSON.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

ROOT = Path(__file__).resolve().parents[1]


class NoManagedPolicies:
    """The translator asks for AWS's managed policies; the template names none of them by name."""

    def load(self) -> dict[str, str]:
        """None."""
        return {}


def packaged(template: dict[str, Any], release: str) -> dict[str, Any]:
    """As `sam package` would leave it: folders are in a bucket, and the release is stamped."""
    for name, resource in template["Resources"].items():
        properties = resource["Properties"]
        for folder in ("CodeUri", "ContentUri"):
            if folder in properties:
                properties[folder] = f"s3://packaged/{name}"
        if "AutoPublishCodeSha256" in properties:
            properties["AutoPublishCodeSha256"] = release
    return template


def main() -> None:
    """Translate `template.yaml` with the parameters of the command line."""
    parser = argparse.ArgumentParser(description="the template as CloudFormation gets it")
    parser.add_argument("--release", default="", metavar="DIGEST")
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE")
    asked = parser.parse_args()
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    template = yaml_parse((ROOT / "template.yaml").read_text(encoding="utf-8"))
    parameters = dict(one.split("=", 1) for one in asked.parameters)
    result = transform(packaged(template, asked.release), parameters, NoManagedPolicies())
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
