#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/watch/step_watch.h"

namespace lockstep::train {

/// A watch of the calls whose kernels write numbers of their own, numbered in a way that does not
/// depend on the device: views, allocations and copies from one device to another are left out.
/// Operators that the watch calls itself reach no other watch.
class OperatorWatch : public StepWatch {
 public:
  void begin(const StepPart& part) final;
  void call(const Operator& op, KeySet keys, Stack& stack) final;

 protected:
  struct Call {
    const Operator& op;
    int64_t call;   ///< of the operator's calls in the part, from 1
    size_t number;  ///< of all calls of the part, from 0
  };

  const StepPart& part() const { return part_; }
  /// How often each operator was called in the part so far.
  const std::map<std::string, int64_t>& counts() const { return counts_; }

  /// `part` has changed.
  virtual void begin_part() {}
  virtual void before([[maybe_unused]] const Call& call, [[maybe_unused]] const Stack& stack) {}
  /// `written`: the call's results, or the arguments that it changes where it returns none.
  /// Undefined ones are left out.
  virtual void after(const Call& call, const std::vector<Tensor>& written) = 0;

 private:
  bool moves_between_devices(const Operator& op, const Stack& stack) const;
  void note_move(const Operator& op, const Stack& stack);

  StepPart part_;
  bool begun_ = false;
  size_t number_ = 0;
  std::map<std::string, int64_t> counts_;
  const Storage* moved_ = nullptr;  ///< what the call before brought from another device
};

}  // namespace lockstep::train
