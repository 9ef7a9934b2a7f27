"""Where credentials of one tenant reach: a session policy for AWS STS.

The role says what may be done, for all tenants; this policy says where, for one, and what counts is
what both allow. In DynamoDB `dynamodb:LeadingKeys` holds the partition keys that a call names: of
the table, or of the index that it queries. Every key of a tenant begins with `T#<tenant>#`, where
the tenant is escaped so that it holds no `#`; the listing's index has `T#<tenant>` itself. A call
that names no key (a Scan) has no `LeadingKeys`, and "for all values" would hold of none; so their
presence is asked for, too.

A vector search has no `LeadingKeys` either, nor any other condition of that kind: AWS lets it be
allowed for an index or not at all. What holds it to a session is the scope that it has to name,
which nobody can guess (`dynamo_keys.vector_scope`), and the index has keys only.
"""

import json
from typing import Any

from turnfold.adapters.dynamo_keys import tenant_key
from turnfold.adapters.s3_archive import session_prefix
from turnfold.domain.errors import InvalidIdError
from turnfold.domain.sessions import SessionKey

MAX_POLICY_CHARACTERS = 2048
"""Of STS."""


def tenant_policy(tenant: str, table_arn: str, bucket_arn: str) -> str:
    """The policy as JSON. Raises `InvalidIdError` if the tenant's name is too long for one.

    A name of 256 characters fits if they are ASCII, and one of about 90 in any script.
    """
    key, prefix = _literal(tenant_key(tenant)), _literal(tenant_prefix(tenant))
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            _allow(
                "dynamodb:*",
                [table_arn, f"{table_arn}/index/*"],
                {
                    "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [key, f"{key}#*"]},
                    "Null": {"dynamodb:LeadingKeys": "false"},
                },
            ),
            _allow("s3:*", f"{bucket_arn}/{prefix}*"),
            _allow("s3:ListBucket*", bucket_arn, {"StringLike": {"s3:prefix": f"{prefix}*"}}),
            # The role names the vector index and the customer's key, where there are such.
            _allow(["dynamodb:SearchVectors", "kms:Decrypt", "kms:GenerateDataKey"], "*"),
        ],
    }
    text = json.dumps(policy, separators=(",", ":"))
    if len(text) > MAX_POLICY_CHARACTERS:
        raise InvalidIdError("the tenant's name is too long for credentials of its own")
    return text


def tenant_prefix(tenant: str) -> str:
    """What the keys of all of a tenant's objects begin with, and those of no other tenant."""
    return session_prefix(SessionKey(tenant, "s")).removesuffix("session=s/")


def _allow(actions: object, resources: object, condition: object = None) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return statement if condition is None else statement | {"Condition": condition}


def _literal(text: str) -> str:
    """The text without meaning in a policy: IAM's own escapes for wildcards and variables."""
    return "".join(f"${{{one}}}" if one in "*?$" else one for one in text)
