#!/bin/sh
# The container's command: restores the database if the volume is new, then runs the program under Litestream, which ends with it.
set -eu
config=$(dirname "$0")/litestream.yml
litestream restore -config "$config" -if-db-not-exists -if-replica-exists "$DATABASE"
exec litestream replicate -config "$config" -exec "$*"
