#pragma once

#include <functional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// Why a block whose rows hold documents runs by being called alone (nn/block_runner.h).
inline constexpr std::string_view kWithinDocuments = "it attends within documents";

// Rows [batch, length] that hold several documents: `sizes` are those of the documents, one behind
// the other, row by row, and none goes beyond its row.

/// Throws ShapeError unless documents of these sizes, none of them empty, fill the rows.
void check_documents(IntList sizes, int64_t batch, int64_t length);
/// Place of each token in its document, from 0: int64 [batch, length] on `device`.
Tensor positions_in_documents(IntList sizes, int64_t batch, int64_t length, Device device);
/// Calls `attend` with each document, [1, size, columns], of x [batch, length, columns], and puts
/// the results [1, size, others] together to [batch, length, others]. Attention within documents
/// takes the time and the memory of their sizes, not of the rows'.
Tensor by_documents(const Tensor& x, IntList sizes,
                    const std::function<Tensor(const Tensor& document)>& attend);

}  // namespace lockstep::nn
