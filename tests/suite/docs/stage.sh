# Sets the stage and runs the script on it: stage.sh AREA PROGRAM REPOSITORY, with bash -euo pipefail.
area=$1 program=$2 repository=$3
mkdir -p "$area"/{bin,home/.aws,work,store/{data,copy}}
ln -s "$program" "$area/bin/hakobu"
export PATH=$area/bin:$PATH HOME=$area/home SHELL=/bin/bash LC_ALL=C.UTF-8
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME HAKOBU_REQUIRE_ALL
# Placeholders for any program.
for name in COMMAND TOOL RESET; do
  printf '#!/bin/sh\nexec true\n' >"$area/bin/$name"
  chmod +x "$area/bin/$name"
done
mount -t tmpfs -o size=256m stage /mnt
mount -t tmpfs -o size=64m stage /srv
mkdir -p /mnt/{new,nfs} /srv/data/sub
ip link set lo up

cd "$area/work"
mkdir -p src/sub photos DIR SRC results old store
for name in a b c; do echo "content of $name" >"src/sub/$name.txt"; done
echo alone >src/a.txt
echo passing >src/c.tmp
ln src/a.txt src/same.txt
touch -d '2 hours ago' src/sub/* src/* src
cp -a src/. /srv/data/
cp -a src/. SRC/
cp -a SRC DST
cp -a src same
cp -a src/. DIR/
cp -a src/. old/
head -c 60000 /dev/urandom >photos/2026-01.jpg
head -c 40000 /dev/urandom >photos/2026-02.jpg
head -c 9000000 /dev/urandom >big.iso
echo a.txt >list.txt
echo a.txt >LIST
echo '*.tmp' >FILE
echo 'cp src/a.txt s3://data/run/a.txt' >commands.txt
printf '[job]\nrw=randread\nsize=1m\nruntime=1\n' >job.fio
echo 'all:' >Makefile
ln -s "$repository/campaigns" campaigns
cp campaigns/e-cp-rsync-load.toml FILE.toml
sed -i 's/4GiB/64KiB/; s/64MiB/64KiB/' FILE.toml
# One worker on this machine stands for a host, a slot of Slurm and a node of Kubernetes.
echo : >hosts.txt
printf '#!/bin/bash\ncat >script.$$; bash script.$$ >&2; echo 1\n' >"$area/bin/sbatch"
printf '#!/bin/sh\n' >"$area/bin/squeue"
printf '#!/bin/sh\nwhile :; do case $1 in -G) exit;; -l|-p|-o|-S|-F) shift 2;; -*) shift;; *) break;; esac; done\nshift; case $* in *agent*) cd;; esac; exec sh -c "$*"\n' >"$area/bin/ssh"
cp -a src same "$HOME"
cp -a src "$HOME/copy"
mkdir -p "$HOME"/{dst,path}
printf '#!/bin/sh\npython3 -m json.tool "$3" >/dev/null\n' >"$area/bin/kubectl"
printf 'spec:\n  priorityClassName: low\n' >pod.yaml
chmod +x "$area"/bin/{sbatch,squeue,ssh,kubectl}

cat >"$HOME/.aws/config" <<'EOF'
[default]
region = us-east-1
endpoint_url = http://127.0.0.1:8999
[profile a]
endpoint_url = http://127.0.0.1:8999
[profile b]
endpoint_url = http://127.0.0.1:8998
[profile other]
endpoint_url = http://127.0.0.1:8998
EOF
for name in default a b other; do
  printf '[%s]\naws_access_key_id = me\naws_secret_access_key = secret\n' "$name"
done >"$HOME/.aws/credentials"
cp -a photos "$area/store/data/"
echo 'some notes, long enough for a range of bytes' >"$area/store/data/notes.txt"
cp "$area/store/data/notes.txt" "$area/store/data/k"
cp -a src "$area/store/data/p"
cp -a "$area/store" "$area/other"
export AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY=secret
hakobu serve s3 "$area/store" --listen 127.0.0.1:8999 >"$area/ready" 2>&1 &
hakobu serve s3 "$area/other" --listen 127.0.0.1:8998 >"$area/ready-other" 2>&1 &
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
for _ in $(seq 300); do
  [ -s "$area/ready" ] && [ -s "$area/ready-other" ] && break
  sleep 0.1
done
# Results of two machines, for what reads results.
if grep -qE ' RUN( |$)' "$area/script.sh"; then
  hakobu cluster plan -q -a --run RUN src/ planned
fi
if grep -qE 'results|report|compare|RESULT|small' "$area/script.sh"; then
  hakobu bench -q -r 2 -w 0 -o small 'true' 'true ' >"$area/bench" 2>&1 || { cat "$area/bench"; exit 1; }
  for name in large elsewhere RESULTS-A RESULTS-B RESULT A B run1 run2 day1 day2 day3 results/rsync-parallel; do
    cp -a small "$name"
  done
fi
bash -euo pipefail "$area/script.sh" >"$area/printed" 2>&1
