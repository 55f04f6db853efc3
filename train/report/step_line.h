#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_line.h"
#include "train/report/rank_times.h"

namespace lockstep::train {

/// Measurements of one finished training step.
struct StepReport {
  int64_t step = 0;  ///< steps finished so far: 1 after the first
  double loss = 0;   ///< mean over the step's targets, in nats
  double grad_norm = 0;
  double learning_rate = 0;
  double step_ms = 0;
  double tokens_per_s = 0;
  uint64_t memory_bytes = 0;  ///< peak so far
  double mfu = -1;            ///< model FLOP utilisation, as `model_flops_used` returns it
  double data_wait_ms = 0;    ///< part of step_ms in which the step waited for its data
  /// Part of step_ms in which it waited for other ranks' gradients after backward; negative if
  /// there are no other ranks.
  double exposed_comm_ms = -1;
  /// Bytes that the rank sent to others; negative if there are no others or it is unknown.
  int64_t sent_bytes = -1;
  /// How long training stood still for checkpoints since the step before; negative if it did not,
  /// or if saves are not asynchronous.
  double checkpoint_ms = -1;
  /// Forward passes of blocks since the step before that ran from a compiled program, and that were
  /// called; negative unless compile.enabled.
  int64_t compiled_passes = -1;
  int64_t called_passes = -1;
  /// Whether forward and backward were a CUDA graph; nothing unless compile.cuda_graphs.
  std::optional<bool> replayed;
  double loss_scale = -1;  ///< negative for runs without loss scaling
  bool skipped = false;    ///< the step updated nothing: its numbers are not finite, or a spike
  std::string non_finite;  ///< the reason, unless it was an overflow under the loss scale
  std::string audit;       ///< what was found wrong before the step was done again; else empty
  std::string spike;       ///< what a step that is a spike is compared with; else empty
  /// The ranks' times up to an earlier step, where they were exchanged since the step before.
  std::optional<RankComparison> ranks;
  /// With parallel.balance SPEED, in the first step of a deal: the number of leaves of each rank.
  std::vector<int64_t> rank_leaves;
};

/// Model FLOP utilisation: arithmetic the model needs per second over what the machine can do.
/// `peak_tflops` in 10^12 FLOP/s; 0, unknown, gives -1.
double model_flops_used(double flops_per_token, double tokens_per_s, double peak_tflops);

/// The step's line of metrics.jsonl: step, loss, grad_norm, lr, step_ms, data_wait_ms,
/// tokens_per_s, memory_peak_bytes; exposed_comm_ms and sent_bytes with several ranks, mfu if the
/// peak rate is known; compiled_passes and called_passes with compile.enabled, replayed with
/// compile.cuda_graphs; checkpoint_ms after an asynchronous save; for skipped steps "skipped":true
/// and, with the reason, "non_finite"; for spikes "spike"; for a step done again after an audit
/// "audit"; the ranks' times where they are known (train/report/rank_times.h), and "rank_leaves"
/// where leaves were dealt out anew.
JsonLine step_record(const StepReport& report);

/// How steps are written to the terminal or a log.
enum class LogFormat {
  kText,     ///< Lockstep's own
  kJson,     ///< one object per line, members as in metrics.jsonl
  kNanoGpt,  ///< "iter 10: loss 4.1234, time 12.34ms, mfu 31.00%", iterations from 0
  kLlmC,     ///< "step 12/100 | loss 7.1 (+0.1z)| norm ... tok/s", steps from 1
};

/// "text", "json", "nanogpt" or "llmc". Throws ConfigError naming the four.
LogFormat parse_log_format(std::string_view name);

/// What a line shows besides the step's own numbers.
struct StepContext {
  int64_t total_steps = 0;
  std::string eta;    ///< expected time to the end, kText only
  double loss_z = 0;  ///< z-scores, kLlmC only; NaN while unknown
  double norm_z = 0;
};

/// Formats a step as one line, without '\n'. If the peak rate is unknown, kText and kJson leave out
/// MFU; the others write -100 %, as nanoGPT and llm.c do.
std::string step_line(LogFormat format, const StepReport& report, const StepContext& context);
/// "loss 2.3457 | grad norm 0.812 | lr 3.000e-04 | 50.0 ms | 40960 tok/s | 412.0 MiB", and the wait
/// for data if it takes more than a twentieth of the step.
std::string measurements(const StepReport& report);

/// The rest of the measurements besides loss and tokens/s, in the order of their use: "grad norm
/// 0.812", "50.0 ms", "lr 3.000e-04", MFU where it is known, a noticeable wait for data, memory.
std::vector<std::string> details(const StepReport& report);

/// Result of an evaluation on held-out data.
struct EvaluationReport {
  int64_t step = 0;
  double train_loss = 0;  ///< training loss of the step before it
  double loss = 0;
  double bits_per_byte = 0;                                    ///< NaN if the bytes are unknown
  double accuracy = std::numeric_limits<double>::quiet_NaN();  ///< NaN except for classifiers
  bool sampled = false;  ///< only part of the held-out data was evaluated
};

std::string evaluation_line(LogFormat format, const EvaluationReport& report);
/// Adds val_bits_per_byte and val_accuracy, unless they are NaN.
void add_scores(JsonLine& line, const EvaluationReport& report);

/// Computes z-scores: the distance of a value from the mean of the last kWindow values, itself
/// included, in standard deviations. Constant memory.
class ZScore {
 public:
  static constexpr size_t kWindow = 128;
  /// Adds `value` and returns its z-score: NaN until the window is full; 0 if all values are equal.
  double update(double value);

 private:
  std::array<double, kWindow> values_{};
  size_t count_ = 0;
};

/// Formats a time as "59 s", "3:07" (minutes) or "2:03:07" (hours); "?" for a negative or
/// non-finite number of seconds.
std::string format_duration(double seconds);

/// Formats a loss with four decimals, "4.1234"; one that no model has as "1e+308".
std::string format_loss(double loss);

/// Formats a size as "512 B", "3.2 KiB", "412.0 MiB" or "1.5 GiB".
std::string format_bytes(uint64_t bytes);

}  // namespace lockstep::train
