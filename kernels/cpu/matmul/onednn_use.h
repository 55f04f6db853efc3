#pragma once

#include "core/base/process_exit.h"

namespace lockstep::cpu::onednn {

/// Held while a thread is in oneDNN, whose compiled kernels are static objects. Converts to false
/// once the process ends and they may be destroyed: then our own loops compute.
class OnednnUse : public ExitGate::Use {
 public:
  OnednnUse() noexcept;
};

/// To be called when oneDNN may have made static objects: after the first product in f32, and after
/// each kernel compiled. The first 64 calls of a process count. Thread-safe.
void note_static_objects() noexcept;

}  // namespace lockstep::cpu::onednn
