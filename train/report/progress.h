#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "train/report/step_line.h"

namespace lockstep::train {

/// How progress is drawn on a stream.
struct ProgressStyle {
  bool bar = false;     ///< one line that is redrawn; otherwise plain lines
  bool colour = false;  ///< the bar may use colour
  int columns = 80;     ///< width of the terminal, for the bar
  /// The terminal's width is asked for again before each redraw, as its window may be resized.
  bool resizes = false;

  /// The style for `stream`: a bar if it is a terminal and TERM is neither unset nor "dumb"; colour
  /// unless NO_COLOR is set and not empty. The width is COLUMNS if that is a positive number, else
  /// the terminal's, which may change, else 80.
  static ProgressStyle of(std::FILE* stream);
};

struct ProgressOptions {
  int64_t total_steps = 0;
  /// Plain lines: the first step, every `log_every`-th and the last are printed. nanoGPT's format
  /// counts from 0, so there it is the first and every `log_every`-th after it.
  int64_t log_every = 10;
  /// Formats other than kText are meant for programs, so they never show a bar.
  LogFormat format = LogFormat::kText;
  /// The bar is redrawn at most this often, but always for the last step.
  std::chrono::milliseconds redraw_interval{100};
};

/// Shows training progress: a bar, step of total, loss, tokens/s and the expected time to the end,
/// then what the terminal has room for: gradient norm, ms per step, learning rate, MFU, peak
/// memory. A narrow terminal shows fewer of them, each whole. That time is an exponential moving
/// average of the step times, multiplied by the steps left, without validation. Write failures do
/// not stop training: the first is kept for `failure`. Not thread-safe.
class Progress {
 public:
  /// Writes to `stream` (normally stderr), which must outlive this object.
  Progress(std::FILE* stream, ProgressStyle style, ProgressOptions options);
  /// Ends the bar's line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set_total_steps(int64_t steps) { options_.total_steps = steps; }
  void step(const StepReport& report);
  /// The result of an evaluation, in the format of the steps.
  void evaluation(const EvaluationReport& report);
  /// Prints a permanent line, above the bar if there is one.
  void note(std::string_view line);

  /// The errno of the first write to the stream that failed; 0 if none has.
  int failure() const { return failure_; }

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  std::string bar_line(const StepReport& report) const;
  std::string erase() const;
  std::string eta(int64_t step) const;
  bool is_due(int64_t step) const;
  void print(std::string_view text);

  std::FILE* stream_;
  ProgressStyle style_;
  ProgressOptions options_;
  int failure_ = 0;
  int64_t steps_seen_ = 0;  // steps of this process, without those before a resume
  double mean_step_ms_ = 0;
  ZScore loss_z_;
  ZScore norm_z_;
  Clock::time_point next_redraw_{};
  std::string bar_;       // text of the bar on the terminal's last line
  size_t bar_width_ = 0;  // columns that it takes, without colour
  StepReport last_;       // the step that the bar shows
};

}  // namespace lockstep::train
