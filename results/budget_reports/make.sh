#!/bin/sh
# Writes every report of this folder; run from the root of the repository.
set -e
budget() { python -m ascendkit.budget "$@"; }
out=results/budget_reports
budget model=v3 phase=train hardware=h800 output=html file=$out/v3_train_h800.html
budget model=v4_flash phase=decode 'hardware=[ascend_950dt,h200,b200]' ep=16 batch=32 context=8192 \
  mtp=1 acceptance=0.7 output=html file=$out/v4_flash_decode.html
budget model=v4_1_flash phase=prefill 'hardware=[ascend_950dt,h200,b200]' ep=16 seq=8192 \
  context=32768 output=html file=$out/v4_1_flash_prefill.html
budget action=validate file=$out/validation.md
