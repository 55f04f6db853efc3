#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/dispatch/value.h"

namespace lockstep::train {

/// Names the module that an operator's call belongs to. In forward that is the running one. A call
/// of backward belongs to the module whose forward pass read or wrote most of its arguments: what
/// was saved for it, and the parameters. For messages.
class ModuleNames {
 public:
  /// Another micro-batch begins.
  void begin();
  /// The module of a call that is about to be made; "" if it belongs to none.
  std::string of(const Stack& stack);
  /// What that call has written is no longer what forward left in that memory.
  void wrote(const std::vector<Tensor>& tensors);

 private:
  std::unordered_map<const Storage*, std::string> module_of_;
  std::string last_;  ///< of the last call of backward that has one
};

}  // namespace lockstep::train
