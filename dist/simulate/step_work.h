#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::dist {

/// A trained parameter of a model, as a simulation sees it.
struct ParameterWork {
  int64_t elements = 0;
  bool is_matrix = false;  ///< has two dimensions or more
  double ready = 0;        ///< seconds of backward after which its gradient is complete
};

/// A module whose parameters are gathered together, or what is outside of all such modules.
struct UnitWork {
  std::string name;                       ///< path of the module; empty for the root
  double forward = 0;                     ///< seconds
  double backward = 0;                    ///< seconds
  std::vector<ParameterWork> parameters;  ///< in the order of the model
};

/// Computation of a rank's step without communication. A micro-batch computes
///
///     forward:   before, units in order, after      (before and after are the root's)
///     backward:  after, units in reverse order, before
struct StepWork {
  std::vector<UnitWork> units;  ///< in the order of forward
  UnitWork root;  ///< its forward and backward are those after the units; usually the classifier
  double forward_before = 0;   ///< seconds of the root's forward before the first unit
  double backward_before = 0;  ///< seconds of the root's backward after the last unit's
  int64_t micro_batches = 1;
  double update = 0;  ///< seconds of the update of all parameters

  double forward() const;   ///< seconds of a micro-batch
  double backward() const;  ///< seconds of a micro-batch
  /// Seconds of a step that updates 1 / `shards` of the parameters.
  double seconds(double shards = 1) const;
  /// Those of the root, then those of the units.
  std::vector<ParameterWork> parameters() const;
  /// Seconds of backward until the first gradient is complete.
  double first_ready() const;
};

/// Returns the same with all times multiplied by `factor`.
StepWork scaled(StepWork work, double factor);
/// Returns the same with times of forward and backward multiplied by different factors.
StepWork scaled_passes(StepWork work, double forward, double backward);

}  // namespace lockstep::dist
