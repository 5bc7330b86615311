"""Serializers of sign-ins and tokens."""

from typing import Any

from rest_framework import serializers

from slicewise_server.web.api.serializers import StrictSerializer, TextField


class CredentialsSerializer(StrictSerializer):
    """User name and password, for which a token is issued."""

    username = TextField(max_length=150)
    password = TextField(max_length=1000, trim_whitespace=False)


class TokenSerializer(serializers.Serializer[Any]):
    """A token, shown this once: only a digest of the token is kept."""

    token = serializers.CharField()
    expiry = serializers.DateTimeField()
