#pragma once

namespace lockstep {

/// Multiprocessors of each GPU that matrix products leave to kernels that run beside them, such as
/// NCCL's: libraries that can choose algorithms for fewer processors do. 0 at the start of the
/// process. The bits of a product may depend on it. Thread-safe; for products queued from then on.
void spare_processors(int count) noexcept;
int spared_processors() noexcept;

}  // namespace lockstep
