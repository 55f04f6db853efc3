#include "kernels/cpu/conv/onednn_conv.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <dnnl.hpp>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/memory/address_space.h"
#include "core/tensor/tensor.h"
#include "kernels/cpu/matmul/onednn.h"
#include "kernels/cpu/matmul/onednn_primitive.h"
#include "kernels/cpu/matmul/onednn_use.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu::onednn {

namespace {

using dnnl::memory;

/// A compiled oneDNN primitive. Its memory is passed at each call, so any thread may run it.
class Step {
 public:
  Step() = default;
  template <class Description>
  Step(dnnl::primitive primitive, const Description& description)
      : primitive_(std::move(primitive)),
        scratch_bytes_(description.scratchpad_desc().get_size()) {}

  void run(std::unordered_map<int, memory> arguments) const {
    thread_local dnnl::stream stream(engine());
    Workspace& scratch = thread_workspace(WorkspaceUse::kConvScratch);
    const memory::desc description({static_cast<int64_t>(scratch_bytes_)}, memory::data_type::u8,
                                   memory::format_tag::x);
    arguments[DNNL_ARG_SCRATCHPAD] = memory_at(description, scratch.room(scratch_bytes_));
    primitive_.execute(stream, arguments);
    stream.wait();
  }

 private:
  dnnl::primitive primitive_;
  size_t scratch_bytes_ = 0;
};

/// Layouts of one of the three tensors: ours (row-major) and the one the kernel chose.
struct Operand {
  memory::desc plain;
  memory::desc packed;
  Step reorder;  ///< to `packed`, or from it for the result; unused if the layouts are equal

  bool is_plain() const { return plain == packed; }
  void pack(const void* from, void* to) const {
    reorder.run({{DNNL_ARG_FROM, memory_at(plain, from)}, {DNNL_ARG_TO, memory_at(packed, to)}});
  }
  void unpack(const void* from, void* to) const {
    reorder.run({{DNNL_ARG_FROM, memory_at(packed, from)}, {DNNL_ARG_TO, memory_at(plain, to)}});
  }
};

/// A kernel compiled for a given number of images of the batch.
struct Compiled {
  Step kernel;
  std::array<Operand, 3> operands;  ///< indexed by ConvResult
  memory::desc bias;
};

constexpr size_t index(ConvResult tensor) { return static_cast<size_t>(tensor); }
constexpr size_t kImage = index(ConvResult::kImage);
constexpr size_t kWeight = index(ConvResult::kWeight);
constexpr size_t kMap = index(ConvResult::kMap);

memory::desc row_major(const memory::dims& sizes, memory::data_type type) {
  memory::dims strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes[i];
  return {sizes, type, strides};
}

memory::dims with_spatial(memory::dims first, const Dims& spatial) {
  first.insert(first.end(), spatial.begin(), spatial.end());
  return first;
}

/// Padding after the last element of each dimension: equal to the padding before the first one if
/// that gives the map's size, else up to the kernel's last position; negative if the kernel stops
/// before the image's end.
memory::dims padding_behind(const ConvProblem& p) {
  memory::dims behind;
  for (size_t i = 0; i < p.rank(); ++i) {
    const int64_t reach = (p.kernel[i] - 1) * p.dilation[i] + 1;
    const int64_t room = p.image[i] + 2 * p.padding[i] - reach;
    const bool symmetric = room >= 0 && room / p.stride[i] + 1 == p.map[i];
    behind.push_back(symmetric ? p.padding[i]
                               : (p.map[i] - 1) * p.stride[i] + reach - p.image[i] - p.padding[i]);
  }
  return behind;
}

/// Throws dnnl::error if oneDNN has no kernel for the problem.
Compiled compile(ConvResult result, const ConvProblem& p, bool with_bias) {
  using Type = memory::data_type;
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  const Type type = p.dtype == DType::kBF16 ? Type::bf16 : Type::f32;
  const memory::dims image = with_spatial({p.batch, p.channels}, p.image);
  const memory::dims map = with_spatial({p.batch, p.features}, p.map);
  const memory::dims weight =
      p.groups == 1
          ? with_spatial({p.features, p.channels}, p.kernel)
          : with_spatial({p.groups, p.features / p.groups, p.channels / p.groups}, p.kernel);
  const memory::dims stride(p.stride.begin(), p.stride.end());
  const memory::dims padding(p.padding.begin(), p.padding.end());
  memory::dims dilation;
  for (const int64_t d : p.dilation) dilation.push_back(d - 1);

  // Results are accumulated in f32 and rounded by the reorder that unpacks them.
  const auto any = [&](const memory::dims& sizes, ConvResult tensor) {
    return memory::desc(sizes, tensor == result ? Type::f32 : type, memory::format_tag::any);
  };
  Compiled compiled;
  if (with_bias) compiled.bias = row_major({p.features}, type);
  // oneDNN requires a forward primitive descriptor as a hint for the backward ones.
  const auto forward = [&](const memory::desc& of_map) {
    const memory::desc of_image(image, type, memory::format_tag::any);
    const memory::desc of_weight(weight, type, memory::format_tag::any);
    return describe<dnnl::convolution_forward>(dnnl::prop_kind::forward_training, kAlgorithm,
                                               of_image, of_weight, compiled.bias, of_map, stride,
                                               dilation, padding, padding_behind(p));
  };
  const memory::desc any_map(map, type, memory::format_tag::any);
  const auto take = [&](const auto& description, dnnl::primitive kernel,
                        const memory::desc& packed_image, const memory::desc& packed_weight,
                        const memory::desc& packed_map) {
    const std::string implementation = description.impl_info_str();
    if (implementation.starts_with("ref")) {
      throw dnnl::error(dnnl_unimplemented, "only the reference kernel");
    }
    compiled.kernel = Step(std::move(kernel), description);
    compiled.operands[kImage] = {row_major(image, type), packed_image, {}};
    compiled.operands[kWeight] = {row_major(weight, type), packed_weight, {}};
    compiled.operands[kMap] = {row_major(map, type), packed_map, {}};
  };
  if (result == ConvResult::kMap) {
    const auto description = forward(any(map, ConvResult::kMap));
    take(description, dnnl::convolution_forward(description), description.src_desc(),
         description.weights_desc(), description.dst_desc());
  } else if (result == ConvResult::kImage) {
    const auto description = describe_backward<dnnl::convolution_backward_data>(
        forward(any_map), kAlgorithm, any(image, ConvResult::kImage),
        any(weight, ConvResult::kWeight), any(map, ConvResult::kMap), stride, dilation, padding,
        padding_behind(p));
    take(description, dnnl::convolution_backward_data(description), description.diff_src_desc(),
         description.weights_desc(), description.diff_dst_desc());
  } else {
    const auto description = describe_backward<dnnl::convolution_backward_weights>(
        forward(any_map), kAlgorithm, any(image, ConvResult::kImage),
        any(weight, ConvResult::kWeight), any(map, ConvResult::kMap), stride, dilation, padding,
        padding_behind(p));
    take(description, dnnl::convolution_backward_weights(description), description.src_desc(),
         description.diff_weights_desc(), description.diff_dst_desc());
  }
  for (size_t i = 0; i < compiled.operands.size(); ++i) {
    Operand& operand = compiled.operands[i];
    if (operand.is_plain()) continue;
    const memory::desc& from = i == index(result) ? operand.packed : operand.plain;
    const memory::desc& to = i == index(result) ? operand.plain : operand.packed;
    const dnnl::reorder::primitive_desc description(engine(), from, engine(), to,
                                                    with_our_memory());
    operand.reorder = Step(dnnl::reorder(description), description);
  }
  return compiled;
}

using Key = std::array<int64_t, 25>;
struct HashKey {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (const int64_t part : key) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

Key key_of(ConvResult result, const ConvProblem& p, bool with_bias) {
  Key key{};
  size_t at = 0;
  for (const int64_t part : {static_cast<int64_t>(result), static_cast<int64_t>(p.dtype), p.batch,
                             p.groups, p.channels, p.features, static_cast<int64_t>(with_bias)}) {
    key[at++] = part;
  }
  for (const Dims* dims : {&p.image, &p.kernel, &p.map, &p.stride, &p.padding, &p.dilation}) {
    for (const int64_t size : *dims) key[at++] = size;
  }
  return key;
}

/// Returns the kernel for `images` images of the problem, or null if oneDNN has none. Kernels are
/// compiled and cached per calling thread; there are few, a handful per layer of a model.
std::shared_ptr<const Compiled> compiled(ConvResult result, ConvProblem p, int64_t images,
                                         bool with_bias) {
  p.batch = images;
  constexpr size_t kMost = 1024;
  using Cache = std::unordered_map<Key, std::shared_ptr<const Compiled>, HashKey>;
  thread_local std::unique_ptr<Cache> kept;  // on the heap as thread_workspace
  if (!kept) kept = std::make_unique<Cache>();
  Cache& cache = *kept;
  const Key key = key_of(result, p, with_bias);
  const auto found = cache.find(key);
  if (found != cache.end()) return found->second;
  const LibraryOnOneThread one_thread;
  std::shared_ptr<const Compiled> made;
  try {
    made = std::make_shared<const Compiled>(compile(result, p, with_bias));
  } catch (const dnnl::error& error) {
    const bool refused =
        error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments;
    if (!refused) throw;
  }
  note_static_objects();
  if (cache.size() >= kMost) cache.clear();
  return cache.emplace(key, std::move(made)).first->second;
}

/// Computes one part of the batch, on any thread.
class Call {
 public:
  Call(const Compiled& compiled, ConvResult result) : compiled_(compiled), result_(result) {}

  void set_bias(const void* bias) { arguments_[DNNL_ARG_BIAS] = memory_at(compiled_.bias, bias); }
  /// Sets an operand in its packed layout, or the memory for a result in that layout.
  void set_packed(size_t tensor, void* data) {
    arguments_[argument(tensor)] = memory_at(compiled_.operands[tensor].packed, data);
  }
  /// Sets an operand in our layout, or the memory for the result; `room` provides the packed copy.
  void set_plain(size_t tensor, void* data, Workspace& room) {
    const Operand& operand = compiled_.operands[tensor];
    if (operand.is_plain()) return set_packed(tensor, data);
    void* const packed = room.room(operand.packed.get_size());
    set_packed(tensor, packed);
    if (tensor == index(result_)) {
      packed_result_ = packed;
      plain_result_ = data;
    } else {
      operand.pack(data, packed);
    }
  }
  void run() const {
    compiled_.kernel.run(arguments_);
    if (plain_result_ == nullptr) return;
    compiled_.operands[index(result_)].unpack(packed_result_, plain_result_);
  }

 private:
  int argument(size_t tensor) const {
    const bool written = tensor == index(result_);
    if (tensor == kImage) return written ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
    if (tensor == kWeight) return written ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    return written ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
  }

  const Compiled& compiled_;
  ConvResult result_;
  std::unordered_map<int, memory> arguments_;
  void* packed_result_ = nullptr;
  void* plain_result_ = nullptr;
};

std::byte* part_of(void* tensor, int64_t elements, DType dtype) {
  return static_cast<std::byte*>(tensor) + elements * static_cast<int64_t>(size_of(dtype));
}

// Of one part, per worker thread.
Workspace& image_room() { return thread_workspace(WorkspaceUse::kConvImage); }
Workspace& map_room() { return thread_workspace(WorkspaceUse::kConvMap); }

/// Computes images or maps; parts of the batch are independent.
bool convolve_images(ConvResult result, const ConvProblem& p, const ConvTensors& t) {
  // FLOP per part: enough to amortise a oneDNN call, small enough to give many threads work.
  constexpr double kFlops = 8e6;
  const int64_t images = std::clamp<int64_t>(
      static_cast<int64_t>(kFlops / std::max(1.0, p.flops_per_image())), 1, p.batch);
  const bool with_bias = t.bias != nullptr;
  const auto whole = compiled(result, p, images, with_bias);
  const int64_t left = p.batch % images;
  const auto rest = left != 0 ? compiled(result, p, left, with_bias) : whole;
  if (whole == nullptr || rest == nullptr) return false;

  // The weight is packed once for all full parts; the last part's kernel may use another layout.
  const Operand& weight = whole->operands[kWeight];
  void* packed_weight = t.weight;
  if (!weight.is_plain()) {
    const LibraryOnOneThread one_thread;
    packed_weight =
        thread_workspace(WorkspaceUse::kConvPackedWeight).room(weight.packed.get_size());
    weight.pack(t.weight, packed_weight);
  }
  parallel_for(0, (p.batch + images - 1) / images, 1, [&](int64_t first, int64_t last) {
    const LibraryOnOneThread one_thread;
    Workspace& weight_room = thread_workspace(WorkspaceUse::kConvWeight);
    for (int64_t part = first; part < last; ++part) {
      const bool is_rest = (part + 1) * images > p.batch;
      Call call(is_rest ? *rest : *whole, result);
      if (is_rest) {
        call.set_plain(kWeight, t.weight, weight_room);
      } else {
        call.set_packed(kWeight, packed_weight);
      }
      call.set_plain(kImage, part_of(t.image, part * images * p.image_count(), p.dtype),
                     image_room());
      call.set_plain(kMap, part_of(t.map, part * images * p.map_count(), p.dtype), map_room());
      if (with_bias) call.set_bias(t.bias);
      call.run();
    }
  });
  return true;
}

/// Computes the weight: each part of the batch gives partial sums, which are added in order.
bool convolve_weight(const ConvProblem& p, const ConvTensors& t) {
  constexpr ConvResult kResult = ConvResult::kWeight;
  const int64_t parts = weight_parts(p);
  const auto start = [&](int64_t part) { return p.batch * part / parts; };
  std::vector<std::shared_ptr<const Compiled>> kernels;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t images = start(part + 1) - start(part);
    kernels.push_back(compiled(kResult, p, images, false));
    if (kernels.back() == nullptr) return false;
    // The partial sums are added in the packed layout, so all parts must use the same one.
    const auto layout = [](const Compiled& kernel) { return kernel.operands[kWeight].packed; };
    if (layout(*kernels.back()) != layout(*kernels[0])) return false;
  }
  const Operand& weight = kernels[0]->operands[kWeight];
  const size_t bytes = weight.packed.get_size();
  const size_t stride = (bytes + 63) / 64 * 64;  // rounded up to whole cache lines
  auto* const sums = static_cast<std::byte*>(
      thread_workspace(WorkspaceUse::kConvSums).room(stride * static_cast<size_t>(parts)));
  const auto sums_of = [&](int64_t part) { return sums + static_cast<size_t>(part) * stride; };
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    const LibraryOnOneThread one_thread;
    for (int64_t part = first; part < last; ++part) {
      Call call(*kernels[static_cast<size_t>(part)], kResult);
      call.set_packed(kWeight, sums_of(part));
      call.set_plain(kImage, part_of(t.image, start(part) * p.image_count(), p.dtype),
                     image_room());
      call.set_plain(kMap, part_of(t.map, start(part) * p.map_count(), p.dtype), map_room());
      call.run();
    }
  });
  auto* const total = reinterpret_cast<float*>(sums_of(0));
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  parallel_for(0, count, 1 << 14, [&](int64_t first, int64_t last) {
    for (int64_t part = 1; part < parts; ++part) {
      const auto* const added = reinterpret_cast<const float*>(sums_of(part));
      for (int64_t i = first; i < last; ++i) total[i] += added[i];
    }
  });
  if (weight.is_plain()) {
    std::copy_n(sums_of(0), bytes, static_cast<std::byte*>(t.weight));
  } else {
    const LibraryOnOneThread one_thread;
    weight.unpack(total, t.weight);
  }
  return true;
}

}  // namespace

namespace {

/// Whether positions in the padded image fit 32 bits, in which oneDNN's kernels compute them.
bool has_small_positions(const ConvProblem& p) {
  for (size_t i = 0; i < p.rank(); ++i) {
    if (p.image[i] + 2 * p.padding[i] > std::numeric_limits<int32_t>::max()) return false;
  }
  return true;
}

}  // namespace

bool convolve(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors) {
  if (problem.is_empty() || !has_small_positions(problem)) return false;
  const OnednnUse use;
  if (!use) return false;
  require_addresses(kRoom, "oneDNN");
  try {
    return result == ConvResult::kWeight ? convolve_weight(problem, tensors)
                                         : convolve_images(result, problem, tensors);
  } catch (const dnnl::error& error) {
    LS_CHECK(error.status != dnnl_out_of_memory, OutOfMemoryError,
             "[convolution] oneDNN gets no memory. Lower the batch size, or raise ulimit -v.");
    throw InternalError(
        fmt::format("[convolution] oneDNN failed: {}. Please report this.", error.what()));
  }
}

}  // namespace lockstep::cpu::onednn
