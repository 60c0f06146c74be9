#!/usr/bin/env bash
# A real Apache Kafka broker (KRaft): its jars from Maven's repository, into <cache>/kafka/libs. Run by the test harness with java.
component=kafka
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pom=$repo/scripts/kafka/pom.xml
version=$(sha256sum "$pom" "$repo/scripts/kafka/log4j2.properties" | sha256sum | cut -c1-16)
kafka=$(sed -n 's|.*<kafka.version>\(.*\)</kafka.version>.*|\1|p' "$pom")
dir=$cache/kafka

lock kafka
need java "Install a Java runtime, 17 or later (Debian: apt-get install openjdk-17-jre-headless). It runs the broker that tests use; sink itself needs none."
major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
[ "${major:-0}" -ge 17 ] || die "the java on PATH is version ${major:-unknown}; Kafka $kafka needs 17 or later"
if stamped "$dir" "$version"; then
	say "Kafka $kafka is there: $dir/libs"
	exit 0
fi
need mvn "Install Maven (Debian: apt-get install maven). It fetches the broker's jars."
start=$SECONDS
say "fetching Kafka $kafka by mvn"
workdir
mkdir "$work/kafka"
mvn -q -B -ntp -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/kafka/libs" >&2 ||
	die "mvn failed, its message is above. Check the network and Maven's settings (~/.m2/settings.xml)."
[ -f "$work/kafka/libs/kafka_2.13-$kafka.jar" ] || die "mvn left no kafka_2.13-$kafka.jar in $work/kafka/libs"
cp "$repo/scripts/kafka/log4j2.properties" "$work/kafka/"
stamp "$work/kafka" "$version"
rm -rf "$dir"
mv "$work/kafka" "$dir"
say "Kafka $kafka is ready after $((SECONDS - start)) s: $dir/libs"
