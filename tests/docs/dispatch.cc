// The C++ of docs/dispatch.md.

#include <lockstep/lockstep.h>

#include <iostream>

#include "train/trainer.h"

namespace lockstep {
namespace documented {

void counting(train::Trainer& trainer) {
#include "dispatch/1.inc"
}

}  // namespace documented
}  // namespace lockstep
