// The C++ of docs/modules.md.

#include <lockstep/lockstep.h>

#include <iostream>

namespace documented {

void building_blocks(const lockstep::Tensor& x, const lockstep::Tensor& y) {
#include "modules/1.inc"
}

void own_module() {
  using namespace lockstep;
#include "modules/2.inc"
}

}  // namespace documented
