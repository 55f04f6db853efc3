#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace lockstep::train {

/// What one finished training step has to tell.
struct StepReport {
  int64_t step = 0;  ///< steps finished so far: 1 after the first
  double loss = 0;   ///< mean over the step's targets, in nats
  double grad_norm = 0;
  double learning_rate = 0;
  double step_ms = 0;
  double tokens_per_s = 0;
  uint64_t memory_bytes = 0;  ///< peak so far
};

/// How progress is drawn on a stream.
struct ProgressStyle {
  bool bar = false;     ///< one line that is redrawn; otherwise plain lines
  bool colour = false;  ///< the bar may use colour
  int columns = 80;     ///< width of the terminal, for the bar

  /// A bar if `stream` is a terminal and TERM is neither unset nor "dumb"; colour unless NO_COLOR
  /// is set to something. The width is COLUMNS if that is a positive number, else the terminal's,
  /// else 80.
  static ProgressStyle of(std::FILE* stream);
};

struct ProgressOptions {
  int64_t total_steps = 0;
  /// Plain lines: the first step, every `log_every`-th and the last are printed.
  int64_t log_every = 10;
  /// The bar is redrawn at most this often, but always for the last step.
  std::chrono::milliseconds redraw_interval{100};
};

/// Shows training progress: step of total, loss, gradient norm, learning rate, ms per step,
/// tokens/s, peak memory and the expected time to the end. That time is the mean of the reported
/// step times (older ones forgotten slowly) times the steps left; validation is not in it. A stream
/// that cannot be written to is no reason to stop training: failures are ignored. Not thread-safe.
class Progress {
 public:
  /// Writes to `stream` (normally stderr), which must outlive this object.
  Progress(std::FILE* stream, ProgressStyle style, ProgressOptions options);
  /// Ends the bar's line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepReport& report);
  /// A line of its own that stays, above the bar if there is one.
  void note(std::string_view line);

 private:
  using Clock = std::chrono::steady_clock;
  std::string bar_line(const StepReport& report) const;
  std::string eta(int64_t step) const;

  std::FILE* stream_;
  ProgressStyle style_;
  ProgressOptions options_;
  double mean_step_ms_ = 0;
  Clock::time_point next_redraw_{};
  std::string bar_;  // what stands on the terminal's last line
};

/// "59 s", "3:07" (minutes) or "2:03:07" (hours); "?" for a negative or non-finite number of
/// seconds.
std::string format_duration(double seconds);

/// "512 B", "3.2 KiB", "412.0 MiB", "1.5 GiB".
std::string format_bytes(uint64_t bytes);

}  // namespace lockstep::train
