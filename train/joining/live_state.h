#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "train/trainer.h"

namespace lockstep::train {

// The state of a run in parts that are copied one after the other while the run trains on: a part
// that was copied between two steps follows all later ones by the gradients of its parameter.

/// A parameter, and what the optimizer keeps for it.
struct StateUnit {
  std::optional<uint32_t> trained;  ///< its number among the optimizer's parameters; frozen: none
  std::vector<Tensor> tensors;      ///< the parameter first

  size_t bytes() const;
};

struct LiveState {
  std::vector<StateUnit> units;  ///< one for each parameter of the model
  std::vector<Tensor> buffers;   ///< change in every step, and follow from no gradient
  std::vector<Tensor> trained;   ///< the optimizer's parameters

  size_t bytes() const;           ///< of the units
  size_t gradient_bytes() const;  ///< of a step
};
/// Lists the state of a model of which a rank has all, on the cpu. Nothing where it cannot be
/// copied in parts: a tensor is not dense, or the optimizer keeps some that are of no parameter.
std::optional<LiveState> live_state(const nn::Module& model, const Optimizer& optimizer);
/// Lists a rank's part of the state of a model that is spread over groups of ranks, on the cpu.
/// Nothing of other models, and where the update of a part takes more than its gradients.
std::optional<LiveState> live_part(Trainer& trainer);

/// What a step changes besides parameters, the optimizer's tensors and buffers.
struct StepFacts {
  StepResult step;
  double gradient_mean = 1;           ///< Trainer::GradientFactors
  std::optional<double> clip_factor;  ///< the same
  int64_t updates = 0;                ///< Optimizer::steps afterwards, as all of these
  Position position;
  GradScalerState scale;
  SpikeMemory spikes;
  std::optional<ScheduleEnd> early_end;
};
/// Returns the facts of the step that the trainer has just finished.
StepFacts facts_of(const Trainer& trainer, const StepResult& step);

/// A piece of what is sent.
struct StateRecord {
  enum class Kind : uint8_t {
    kBegin,     ///< what came before is void
    kValues,    ///< of tensor `tensor` of unit `number`
    kUnit,      ///< unit `number` is whole: its gradients come with all steps from now on
    kBuffer,    ///< values of buffer `number`
    kGradient,  ///< of trained parameter `number`
    kStep       ///< the step that these gradients and buffers are of: StepFacts as bytes
  };
  Kind kind = Kind::kBegin;
  uint32_t number = 0;
  uint32_t tensor = 0;
  uint64_t offset = 0;  ///< of the bytes in those of the tensor
  std::string_view bytes;
};

/// Writes records into parts of about 128 KiB: larger ones leave the caches as they are copied.
class StateWriter {
 public:
  void add(const StateRecord& record);
  /// All bytes of a dense tensor on the cpu, in as many records as parts are needed.
  void add_tensor(StateRecord::Kind kind, size_t number, size_t index, const Tensor& tensor);
  void add_step(const StepFacts& facts);
  /// The parts that were written since the last call.
  std::vector<std::string> take();

 private:
  std::string& part_for(size_t bytes);
  std::vector<std::string> parts_;
};

/// Takes the next record off `part`. Throws DataError for what is none.
StateRecord take_record(std::string_view& part);
StepFacts step_facts_of(std::string_view bytes);

}  // namespace lockstep::train
