// The entry point Python calls.
#include <cstdio>
#include <thread>

#include "runtime/judge/judge.h"

using namespace ak;

extern "C" AK_API int ak_launch(const Spec* spec, Report* report) {
  install_signal_handlers();
  Launch launch{*spec, *report};
  prepare_deadline(launch);
  launch.by_kind[1].assign(launch.cores_of(true), nullptr);
  launch.by_kind[0].assign(launch.cores_of(false), nullptr);
  judge::on_launch_start(launch);
  uint32_t n = std::max(1u, std::min(spec->threads, spec->grid));
  launch.workers = n;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < n; ++i) threads.emplace_back([&launch] { run_worker(launch); });
  for (auto& t : threads) t.join();
  judge::on_launch_end(launch);
  return launch.aborted ? 1 : 0;
}

extern "C" AK_API uint32_t ak_abi() {
  return (uint32_t(sizeof(Spec)) << 16) | uint32_t(sizeof(Report));
}
