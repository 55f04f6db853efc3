#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "configs/load.h"
#include "core/base/error.h"
#include "launcher/command_line.h"
#include "launcher/exit_code.h"
#include "launcher/verbs.h"

namespace {

void report(const std::exception& error) {
  const char* kind = lockstep::launcher::error_kind(error);
  if (const auto* at = dynamic_cast<const lockstep::config::SourceError*>(&error)) {
    fmt::print(stderr, "{}: {}: {}\n", at->where(), kind, at->problem());
  } else {
    fmt::print(stderr, "{}: {}\n", kind, error.what());
  }
}

/// Delays the exit of a rank that failed only because another rank did (PeerLostError): a launcher
/// takes the exit status of the first rank that ends, which should be that of the cause.
void delay_exit_after_peer_loss(const std::exception& error) {
  constexpr std::chrono::seconds kCauseEnds(2);
  if (dynamic_cast<const lockstep::PeerLostError*>(&error) == nullptr) return;
  std::fflush(nullptr);
  std::this_thread::sleep_for(kCauseEnds);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lockstep::launcher;
  // A write beyond the limit of `ulimit -f` then fails like any other, and is reported by name.
  std::signal(SIGXFSZ, SIG_IGN);
  CommandLine app("Lockstep trains neural networks: the same config gives the same bits.",
                  "lockstep");
  app.requires_verb();
  app.version(LOCKSTEP_VERSION);
  add_train(app, {argv, argv + argc});
  // `launch` takes mpirun's options, which CommandLine cannot parse.
  const bool launches = argc > 1 && std::string_view(argv[1]) == "launch";
  add_launch(
      app, launches ? std::vector<std::string>(argv + 2, argv + argc) : std::vector<std::string>());
  add_sample(app);
  add_eval(app);
  add_checkpoint(app);
  add_plan(app);
  add_graph(app);
  add_bench(app);
  add_stress(app);
  add_ops(app);
  add_data(app);
  add_compare(app);
  add_plot(app);
  add_trace(app);
  add_config(app);
  add_completion(app);
  add_doctor(app);
  try {
    return app.parse(launches ? 2 : argc, argv).value_or(kSuccess);
  } catch (const std::exception& error) {
    report(error);
    delay_exit_after_peer_loss(error);
    return exit_code(error);
  }
}
