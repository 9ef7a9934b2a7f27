"""Who gets in, what a refusal looks like, and what keys and credentials may do."""

import json
import re
from typing import Any

import pytest

OPEN = {"/healthz", "/openapi.json", "/docs"}
METHODS = {"get", "head", "post", "put", "patch", "delete", "options"}


@pytest.fixture
def definition(resources: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = resources["Api"]["Properties"]["DefinitionBody"]
    return found


def requirements(operation: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """What a method asks for, with a usage plan and without."""
    _, metered, unmetered = operation["security"]["Fn::If"]
    return [metered, unmetered]


def test_everything_but_three_paths_asks_the_authorizer(definition: dict[str, Any]) -> None:
    for path, operations in definition["paths"].items():
        for method in METHODS & set(operations):
            if path in OPEN:
                assert "security" not in operations[method]
                assert method in {"get", "head"}
            else:
                for required in requirements(operations[method]):
                    assert len(required) == 1
                    assert required[0]["caller"] == []
    assert set(definition["paths"]) == OPEN | {"/", "/{proxy+}"}


def test_a_usage_plan_counts_by_the_authorizers_word(
    definition: dict[str, Any], template: dict[str, Any]
) -> None:
    assert definition["x-amazon-apigateway-api-key-source"] == "AUTHORIZER"
    metered, unmetered = requirements(definition["paths"]["/{proxy+}"]["post"])
    assert set(metered[0]) == {"caller", "usage"}
    assert set(unmetered[0]) == {"caller"}
    plan = template["Resources"]["UsagePlan"]
    assert plan["Condition"] == "HasUsagePlan"
    assert set(plan["Properties"]) >= {"ApiStages", "Throttle", "Quota"}


def test_what_cannot_be_a_token_is_refused_unasked(definition: dict[str, Any]) -> None:
    scheme = definition["components"]["securitySchemes"]["caller"]
    authorizer = scheme["x-amazon-apigateway-authorizer"]
    assert authorizer["type"] == "token"
    assert authorizer["authorizerResultTtlInSeconds"] == {"Ref": "AuthorizerCacheSeconds"}
    pattern = re.compile(authorizer["identityValidationExpression"])
    for good in ("Bearer tf_abc_DEF", "bearer a.b-c_d.e~f+/=", "BEARER x"):
        assert pattern.fullmatch(good)
    for bad in ("", "Bearer", "Bearer ", "tf_a_b", "Basic bG9jYWw6", "Bearer a b", "Bearer é"):
        assert not pattern.fullmatch(bad)


def test_every_refusal_of_the_gateway_is_a_problem(definition: dict[str, Any]) -> None:
    codes = {}
    for kind, response in definition["x-amazon-apigateway-gateway-responses"].items():
        headers = response["responseParameters"]
        assert headers["gatewayresponse.header.Content-Type"] == "'application/problem+json'"
        assert headers["gatewayresponse.header.X-Request-Id"] == "context.requestId"
        problem = json.loads(response["responseTemplates"]["application/json"])
        assert set(problem) == {"type", "title", "status", "detail", "code", "request_id"}
        assert str(problem["status"]) == response["statusCode"]
        assert problem["type"] == f"/problems/{problem['code']}"
        assert problem["request_id"] == "$context.requestId"
        if problem["status"] in {429, 503}:
            assert headers["gatewayresponse.header.Retry-After"]
        codes[kind] = problem["code"]
    assert codes["UNAUTHORIZED"] == codes["ACCESS_DENIED"] == "unauthorized"
    assert codes["INVALID_API_KEY"] == "forbidden"
    assert codes["THROTTLED"] == codes["QUOTA_EXCEEDED"] == "throttled"
    assert codes["AUTHORIZER_FAILURE"] == "store_unavailable"
    assert {"DEFAULT_4XX", "DEFAULT_5XX"} <= set(codes)


def test_unknown_and_missing_keys_are_told_the_same(definition: dict[str, Any]) -> None:
    responses = definition["x-amazon-apigateway-gateway-responses"]
    assert responses["UNAUTHORIZED"] == responses["ACCESS_DENIED"]


def test_the_emulator_answers_as_api_gateway_does(
    definition: dict[str, Any], resources: dict[str, Any]
) -> None:
    emulated = {
        one["Properties"]["ResponseType"]: one
        for one in resources.values()
        if one["Type"] == "AWS::ApiGateway::GatewayResponse"
    }
    assert set(emulated) == {"UNAUTHORIZED", "ACCESS_DENIED", "AUTHORIZER_FAILURE"}
    for kind, resource in emulated.items():
        response = definition["x-amazon-apigateway-gateway-responses"][kind]
        assert resource["Condition"] == "OnEmulator"
        assert resource["Properties"]["StatusCode"] == response["statusCode"]
        assert resource["Properties"]["ResponseParameters"] == response["responseParameters"]
        assert resource["Properties"]["ResponseTemplates"] == response["responseTemplates"]


def test_the_authorizer_can_use_keys_but_not_make_them(resources: dict[str, Any]) -> None:
    statements = resources["AuthorizerRole"]["Properties"]["Policies"][0]["PolicyDocument"]
    by_sid = {one["Sid"]: one for one in statements["Statement"]}
    assert set(by_sid) == {"Log", "Keys", "Pepper"}
    assert by_sid["Keys"]["Action"] == ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    assert by_sid["Keys"]["Resource"] == {"Fn::GetAtt": ["KeyTable", "Arn"]}


def test_no_other_function_reaches_keys_or_pepper(resources: dict[str, Any]) -> None:
    for name, resource in resources.items():
        if resource["Type"] == "AWS::IAM::Role" and name != "AuthorizerRole":
            text = json.dumps(resource)
            assert "KeyTable" not in text
            assert "PepperSecret" not in text


@pytest.mark.parametrize("name", ["KeyTable", "PepperSecret"])
def test_keys_outlive_the_stack(resources: dict[str, Any], name: str) -> None:
    assert resources[name]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resources[name]["UpdateReplacePolicy"] == "Retain"


def test_the_first_pepper_is_of_the_form_that_is_read(resources: dict[str, Any]) -> None:
    made = resources["PepperSecret"]["Properties"]["GenerateSecretString"]
    assert json.loads(made["SecretStringTemplate"])["current"] == made["GenerateStringKey"]
    assert made["PasswordLength"] >= 64
    assert made["ExcludePunctuation"] is True


def test_only_the_authorizer_carries_the_token_library(resources: dict[str, Any]) -> None:
    carriers = {
        name
        for name, one in resources.items()
        if {"Ref": "JwtLayer"} in one["Properties"].get("Layers", [])
    }
    assert carriers == {"AuthorizerFunction"}


def test_with_tenants_isolated_the_api_has_no_data_of_its_own(resources: dict[str, Any]) -> None:
    statements = resources["ApiRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    shared = [
        one["Fn::If"][1]
        for one in statements
        if "Fn::If" in one and one["Fn::If"][0] in ("SharesCredentials", "SearchesVectors")
    ]
    always = [one for one in statements if "Fn::If" not in one]
    assert {one["Sid"] for one in shared} == {
        "Memory",
        "Lists",
        "Vectors",
        "Transcript",
        "TranscriptList",
    }
    for one in always:
        assert "dynamodb:" not in json.dumps(one)
        assert "s3:" not in json.dumps(one)
    # And the tenant's role is exactly that.
    tenant = resources["TenantRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    assert [one.get("Fn::If", [None, one])[1] for one in tenant] == shared


def test_only_the_api_assumes_the_tenants_role(resources: dict[str, Any]) -> None:
    role = resources["TenantRole"]
    assert role["Condition"] == "IsolatesTenants"
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"AWS": {"Fn::GetAtt": ["ApiRole", "Arn"]}}
    policy = resources["TenantPolicy"]["Properties"]
    assert policy["Roles"] == [{"Ref": "ApiRole"}]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "sts:AssumeRole"
    assert statement["Resource"] == {"Fn::GetAtt": ["TenantRole", "Arn"]}
