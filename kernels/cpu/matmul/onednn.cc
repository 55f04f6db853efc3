#include "kernels/cpu/matmul/onednn.h"

#include <dnnl_debug.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/device/arithmetic_facts.h"
#include "core/memory/address_space.h"
#include "kernels/cpu/arithmetic.h"
#include "kernels/cpu/matmul/loop_products.h"
#include "kernels/cpu/matmul/onednn_primitive.h"
#include "kernels/cpu/matmul/onednn_use.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu::onednn {

namespace {

/// oneDNN's version and the instruction set it uses on this processor, given its own environment
/// variables (ONEDNN_MAX_CPU_ISA, ...).
std::string facts() {
  const dnnl_version_t& version = *dnnl_version();
  std::string text = fmt::format("{}.{}.{} with {}", version.major, version.minor, version.patch,
                                 dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa()));
  const dnnl_cpu_isa_hints_t hints = dnnl_get_cpu_isa_hints();
  if (hints != dnnl_cpu_isa_no_hints) text += fmt::format(", {}", dnnl_cpu_isa_hints2str(hints));
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict;
  dnnl_get_default_fpmath_mode(&mode);
  if (mode != dnnl_fpmath_mode_strict) text += fmt::format(", {}", dnnl_fpmath_mode2str(mode));
  if (!is_fast_in_bf16()) text += ", bfloat16 as float32";
  return text;
}

[[maybe_unused]] const bool kRegistered = register_arithmetic_fact("oneDNN", facts);

/// Whether the library uses the instructions of `isa` on this processor.
bool uses(dnnl_cpu_isa_t isa) { return (dnnl_get_effective_cpu_isa() & isa) == isa; }

/// m, n, k, lda, ldb, ldc, and flags.
using MatmulKey = std::array<int64_t, 7>;
constexpr int64_t kTransposeA = 1;
constexpr int64_t kTransposeB = 2;
constexpr int64_t kHalfResult = 4;  // else f32
constexpr int64_t kBias = 8;
struct HashKey {
  size_t operator()(const MatmulKey& key) const {
    uint64_t hash = 0;
    for (const int64_t part : key) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

/// A compiled product and the size of its scratch memory.
struct Matmul {
  dnnl::matmul primitive;
  dnnl::memory::desc a;
  dnnl::memory::desc b;
  dnnl::memory::desc bias;
  dnnl::memory::desc c;
  size_t scratch_bytes = 0;
};

dnnl::memory::desc matrix(int64_t rows, int64_t columns, int64_t ld, bool transposed,
                          dnnl::memory::data_type type) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, ld} : dnnl::memory::dims{ld, 1};
  return {{rows, columns}, type, strides};
}

Matmul compile(const MatmulKey& key) {
  const auto [m, n, k, lda, ldb, ldc, flags] = key;
  using Type = dnnl::memory::data_type;
  Matmul matmul;
  matmul.a = matrix(m, k, lda, (flags & kTransposeA) != 0, Type::bf16);
  matmul.b = matrix(k, n, ldb, (flags & kTransposeB) != 0, Type::bf16);
  matmul.c = matrix(m, n, ldc, false, (flags & kHalfResult) != 0 ? Type::bf16 : Type::f32);
  const bool biased = (flags & kBias) != 0;
  if (biased) matmul.bias = matrix(1, n, n, false, Type::bf16);
  const auto description = biased
                               ? describe<dnnl::matmul>(matmul.a, matmul.b, matmul.bias, matmul.c)
                               : describe<dnnl::matmul>(matmul.a, matmul.b, matmul.c);
  matmul.primitive = dnnl::matmul(description);
  matmul.scratch_bytes = description.scratchpad_desc().get_size();
  note_static_objects();
  return matmul;
}

/// Returns the product compiled on this thread. They are few: one per tile size in a model.
const Matmul& compiled(const MatmulKey& key) {
  constexpr size_t kMost = 512;
  using Cache = std::unordered_map<MatmulKey, Matmul, HashKey>;
  thread_local std::unique_ptr<Cache> cache;  // on the heap as thread_workspace
  if (!cache) cache = std::make_unique<Cache>();
  const auto found = cache->find(key);
  if (found != cache->end()) return found->second;
  if (cache->size() >= kMost) cache->clear();
  return cache->emplace(key, compile(key)).first->second;
}

/// oneDNN 3.7 reads the one row of a transposed factor as if its elements lay side by side.
constexpr bool kMisreadsStridedRows = DNNL_VERSION_MAJOR >= 3;

/// `length` elements, `stride` apart, side by side; valid until the thread's next call.
const BFloat16* side_by_side(const BFloat16* from, int64_t length, int64_t stride) {
  if (stride == 1) return from;
  auto* const to =
      static_cast<BFloat16*>(thread_workspace(WorkspaceUse::kWideProduct)
                                 .room(static_cast<size_t>(length) * sizeof(BFloat16)));
  for (int64_t i = 0; i < length; ++i) to[i] = from[i * stride];
  return to;
}

/// The library computes the one row of a product in another order than each of several rows.
constexpr int64_t kLeastRows = 16;

/// Computes a product of fewer rows than kLeastRows as one of as many, so that their sums are those
/// of more rows.
void multiply_padded(bool transpose_b, int64_t m, int64_t n, int64_t k, const BFloat16* a,
                     int64_t lda, const BFloat16* b, int64_t ldb, const Bf16Result& result) {
  const size_t element = size_of(result.dtype);
  const size_t factor_bytes = static_cast<size_t>(kLeastRows * k) * sizeof(BFloat16);
  const size_t row_bytes = static_cast<size_t>(n) * element;
  auto* const room = static_cast<std::byte*>(
      thread_workspace(WorkspaceUse::kWideProduct)
          .room(factor_bytes + static_cast<size_t>(kLeastRows) * row_bytes));
  auto* const rows = reinterpret_cast<BFloat16*>(room);
  for (int64_t i = 0; i < m; ++i) std::copy_n(a + i * lda, k, rows + i * k);
  std::fill_n(rows + m * k, (kLeastRows - m) * k, BFloat16());
  gemm_bf16(false, transpose_b, kLeastRows, n, k, rows, k, b, ldb,
            {room + factor_bytes, n, result.dtype, result.bias});
  for (int64_t i = 0; i < m; ++i) {
    std::memcpy(static_cast<std::byte*>(result.data) + static_cast<size_t>(i * result.ld) * element,
                room + factor_bytes + static_cast<size_t>(i) * row_bytes, row_bytes);
  }
}

}  // namespace

bool has_tiles() {
  static const bool kHas = uses(dnnl_cpu_isa_avx512_core_amx);
  return kHas;
}

bool is_fast_in_bf16() {
  static const bool kIs =
      has_tiles() || (uses(dnnl_cpu_isa_avx512_core_bf16) && has_bf16_products());
  return kIs;
}

void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
           const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
           int64_t ldc) {
  require_addresses(kRoom, "oneDNN");
  const OnednnUse use;
  if (!use) {
    return loops::sgemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
  const LibraryOnOneThread one_thread;
  const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k,
                                          alpha, a, lda, b, ldb, beta, c, ldc);
  static constinit std::atomic<bool> noted = false;
  if (!noted.load(std::memory_order_relaxed)) {
    note_static_objects();
    noted.store(true, std::memory_order_relaxed);
  }
  LS_CHECK(
      status != dnnl_out_of_memory, OutOfMemoryError,
      "[gemm] oneDNN gets no memory for a product of {} x {} x {}. Lower the batch size, or raise "
      "ulimit -v.",
      m, n, k);
  LS_CHECK(status == dnnl_success, InternalError,
           "[gemm] oneDNN refused a product of {} x {} x {} with leading dimensions {}, {}, {}: "
           "status {}. Please report this.",
           m, n, k, lda, ldb, ldc, static_cast<int>(status));
}

void gemm_bf16(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
               const BFloat16* a, int64_t lda, const BFloat16* b, int64_t ldb,
               const Bf16Result& result) {
  require_addresses(kRoom, "oneDNN");
  const OnednnUse use;
  if (!use) return loops::gemm_bf16(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, result);
  const LibraryOnOneThread one_thread;
  if (!transpose_a && m < kLeastRows) {
    return multiply_padded(transpose_b, m, n, k, a, lda, b, ldb, result);
  }
  if (kMisreadsStridedRows && m == 1 && transpose_a) {
    a = side_by_side(a, k, lda);
    transpose_a = false;
    lda = k;
  }
  try {
    const int64_t flags = (transpose_a ? kTransposeA : 0) | (transpose_b ? kTransposeB : 0) |
                          (result.dtype == DType::kBF16 ? kHalfResult : 0) |
                          (result.bias != nullptr ? kBias : 0);
    const Matmul& matmul = compiled({m, n, k, lda, ldb, result.ld, flags});
    Workspace& scratch = thread_workspace(WorkspaceUse::kProductScratch);
    const dnnl::memory::desc scratch_description({static_cast<int64_t>(matmul.scratch_bytes)},
                                                 dnnl::memory::data_type::u8,
                                                 dnnl::memory::format_tag::x);
    thread_local dnnl::stream stream(engine());
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, memory_at(matmul.a, a)},
        {DNNL_ARG_WEIGHTS, memory_at(matmul.b, b)},
        {DNNL_ARG_DST, memory_at(matmul.c, result.data)},
        {DNNL_ARG_SCRATCHPAD, memory_at(scratch_description, scratch.room(matmul.scratch_bytes))}};
    if (result.bias != nullptr) arguments[DNNL_ARG_BIAS] = memory_at(matmul.bias, result.bias);
    matmul.primitive.execute(stream, arguments);
    stream.wait();
  } catch (const dnnl::error& error) {
    LS_CHECK(error.status != dnnl_out_of_memory, OutOfMemoryError,
             "[gemm] oneDNN gets no memory for a bfloat16 product of {} x {} x {}. Lower the batch "
             "size, or raise ulimit -v.",
             m, n, k);
    throw InternalError(fmt::format(
        "[gemm] oneDNN failed on a bfloat16 product of {} x {} x {}: {}. Please report this.", m, n,
        k, error.what()));
  }
}

}  // namespace lockstep::cpu::onednn
