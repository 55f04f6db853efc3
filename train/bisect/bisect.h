#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/bisect/captured_call.h"
#include "train/bisect/recorded_run.h"
#include "train/watch/step_watch.h"

namespace lockstep::train {

struct BisectOptions {
  /// Replays the runs even where all that they recorded is the same, from their beginning: a wrong
  /// number may leave losses and weights as they are.
  bool replay_equal = false;
  /// Replays runs that other programs or processors computed: bits may then differ by that alone.
  bool other_programs = false;
  /// Above 0: numbers may differ by this much of the largest one that an operator writes, as they
  /// do between devices. Both replays then begin each step with the state of the first run, so that
  /// what is allowed does not add up.
  double tolerance = 0;
};

/// The first operator that gives two runs different bits.
struct OperatorDifference {
  StepPart part;
  std::optional<int> rank;    ///< that made the call, where several compute a run again
  int64_t micro_batches = 0;  ///< of a step
  std::optional<int64_t> leaf;
  std::string operator_name;
  std::string operator_of_b;        ///< where it is another one, or "none"; empty if it is the same
  std::string phase;                ///< "forward", "backward"
  std::string module;               ///< may be empty
  int64_t call = 0;                 ///< of the operator's calls in the part, from 1
  std::vector<std::string> inputs;  ///< arguments that differ; none: the operator itself does
  double distance = 0;              ///< with a tolerance: by the largest number that it writes
  /// Nothing if it did not differ when it was computed once more.
  std::optional<ElementDifference> element;
};

/// A step whose numbers, computed again, are not those that the run recorded.
struct UnrepeatedStep {
  int64_t step = 0;  ///< from 1
  std::string run;
  std::string quantity;  ///< "loss" or "grad_norm"
  double recorded = 0;
  double replayed = 0;
};

struct Bisection {
  std::vector<std::string> notes;  ///< what the reader should know, a line each
  /// First step whose losses or norms differ, from 1; 0: none, the runs' weights or nothing do.
  int64_t differing_step = 0;
  bool with_tolerance = false;  ///< numbers were allowed to differ
  bool identical = false;       ///< in all that was recorded; with a tolerance, in losses and norms
  int64_t from_step = 0;        ///< steps done where the replay began
  int64_t replayed = 0;         ///< steps of each run
  int64_t compared = 0;         ///< with a tolerance: calls that both made
  std::optional<OperatorDifference> found;
  std::vector<UnrepeatedStep> unrepeated;  ///< the first of each run

  /// Whether the runs are the same as far as was looked.
  bool same() const { return identical && !found && unrepeated.empty(); }
};

/// Finds where two runs part: the first step whose losses, gradient norms or weights differ, and,
/// by computing both again from the newest checkpoint before it that has the same state in both,
/// the first operator that writes other bits. Each is computed in this process, on its own device:
/// with reproducibility BITWISE by one rank, whatever computed it, as the bits are the same;
/// without it by as many ranks as computed it, which must be as many in both.
///
/// With a tolerance the first operator whose numbers lie further apart than that, of the first step
/// whose losses or norms do. One rank then computes either, whatever computed it.
///
/// Throws DataError and CheckpointError for runs that cannot be read, of other data, of other
/// programs (unless the options allow them) or of a later version; ConfigError for runs whose steps
/// cannot be compared call by call or not computed by threads, and for runs that begin with
/// different weights.
Bisection bisect(const RecordedRun& a, const RecordedRun& b, const BisectOptions& options);

/// The result in a few lines.
std::string describe(const Bisection& found, const RecordedRun& a, const RecordedRun& b);

}  // namespace lockstep::train
