#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "launcher/command_line.h"
#include "launcher/verbs.h"
#include "train/page/run_watch.h"

namespace lockstep::launcher {

namespace {

struct WatchOptions {
  std::string run;
  double interval = 1;
  bool once = false;
};

/// Lines of the terminal, but for the one on which the cursor rests.
int terminal_lines() {
  winsize size{};
  const bool is_told = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1;
  return is_told ? size.ws_row - 1 : 23;
}

/// Replaces what the terminal shows by the view, without the flicker of clearing it first.
void show(const std::string& view) {
  std::string text = "\x1b[H";
  for (const char c : view) {
    if (c == '\n') text += "\x1b[K";
    text += c;
  }
  fmt::print("{}\x1b[J", text);
  std::fflush(stdout);
}

void watch(const WatchOptions& options) {
  train::RunWatch run(options.run);
  run.look();
  const train::ProgressStyle first = train::ProgressStyle::of(stdout);
  if (options.once || !first.bar) {
    fmt::print("{}", run.text(first));
    return;
  }
  fmt::print("\x1b[2J");
  for (;;) {
    // The terminal's size is asked for each time: its window may be resized.
    show(run.text(train::ProgressStyle::of(stdout), terminal_lines()));
    if (run.finished()) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
    run.look();
  }
}

}  // namespace

void add_watch(const Verb& app) {
  auto options = std::make_shared<WatchOptions>();
  const Verb verb = app.verb(
      "watch", "Follow a run in the terminal: loss curve, speeds, ranks, over its restarts");
  verb.option("run", options->run, "Run directory; it need not be there yet").required();
  verb.option("--interval", options->interval, "Seconds between looks (default 1)").positive();
  verb.flag("--once", options->once, "Print the view once and end, as without a terminal");
  verb.runs([options] { watch(*options); });
}

}  // namespace lockstep::launcher
