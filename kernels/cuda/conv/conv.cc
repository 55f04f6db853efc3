#include "kernels/cuda/conv/conv.h"

#include <algorithm>
#include <optional>

#include "core/device/kernel_scope.h"
#include "core/dispatch/kernel.h"
#include "core/tensor/memory_format.h"
#include "kernels/common/conv_problem.h"
#include "kernels/common/restrided.h"
#include "kernels/cuda/conv/conv.fatbin.h"
#include "kernels/cuda/conv/cudnn_conv.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

/// Product kernels with tiles of 64 and of 128.
struct ConvTileKernels {
  DTypeKernels small, large;
  explicit ConvTileKernels(const std::string& stem)
      : small(kernels_of_numbers(kImage, stem + "_64")),
        large(kImage, stem + "_128", {DType::kF32, DType::kBF16, DType::kF16}) {}
  Kernel operator()(int tile, DType dtype) const { return (tile == 64 ? small : large)[dtype]; }
};
const ConvTileKernels kProduct("conv_product"), kDivided("conv_divided");
const DTypeKernels kJoin = kernels_of_numbers(kImage, "conv_join");
const DTypeKernels kSingle(kImage, "conv_single");
const DTypeKernels kRow(kImage, "conv_row");
const DTypeKernels kRowDivided(kImage, "conv_row_divided");
const DTypeKernels kBias(kImage, "conv_bias");
const Kernel kBiasJoin(kImage, "conv_bias_join");
const DTypeKernels kAddBias(kImage, "conv_add_bias", {DType::kF32, DType::kBF16, DType::kF16});

int64_t pieces(int64_t all, int64_t each) { return (all + each - 1) / each; }

/// One number for each of three dimensions; missing leading dimensions get `otherwise`.
struct Triple {
  int64_t at[3];
  Triple(const Dims& numbers, int64_t otherwise) {
    for (size_t d = 0; d < 3; ++d) {
      const size_t from_end = 3 - d;
      at[d] = from_end <= numbers.size() ? numbers[numbers.size() - from_end] : otherwise;
    }
  }
};

/// Index decomposition of a tensor [outer, sizes...], for indices below `end`.
ConvPlaces places_of(const Triple& sizes, int64_t end, int64_t outer_stride) {
  ConvPlaces places{};
  const int64_t line = sizes.at[2], plane = sizes.at[1] * line, all = sizes.at[0] * plane;
  places.outer = IndexSplitter(all, end);
  places.plane = IndexSplitter(plane, all);
  places.line = IndexSplitter(line, plane);
  places.outer_stride = outer_stride;
  return places;
}

void set(ConvPlaces& places, const Triple& scale, const Triple& shift, int sign) {
  for (int d = 0; d < 3; ++d) {
    places.scale[d] = static_cast<int32_t>(scale.at[d]);
    places.shift[d] = static_cast<int32_t>(sign * shift.at[d]);
  }
}

Conv product_of(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors) {
  const int64_t groups = problem.groups;
  const int64_t channels = problem.channels / groups, features = problem.features / groups;
  const int64_t kernel_size = problem.kernel_size(), map_size = problem.map_size(),
                image_size = problem.image_size();
  const Triple image(problem.image, 1), kernel(problem.kernel, 1), map(problem.map, 1);
  const Triple stride(problem.stride, 1), padding(problem.padding, 0), none({}, 0), one({}, 1);
  const Triple dilation(problem.dilation, 1);
  const int64_t weight_group = features * channels * kernel_size;
  const int64_t image_group = channels * image_size, map_group = features * map_size;

  Conv p{};
  p.dtype = problem.dtype;
  p.groups = groups;
  std::ranges::fill(p.divisor, 1);
  const auto set_images = [&](const void* data, const Triple& size, int64_t group) {
    p.right = data;
    p.right_group = group;
    for (int d = 0; d < 3; ++d) p.size[d] = static_cast<int32_t>(size.at[d]);
  };
  switch (result) {
    case ConvResult::kMap:
      p.left = tensors.weight;
      p.out = tensors.map;
      set_images(tensors.image, image, image_group);
      p.rows = features;
      p.columns = problem.batch * map_size;
      p.depth = channels * kernel_size;
      p.left_row = p.depth;
      p.left_outer = kernel_size;
      p.out_row = map_size;
      p.out_outer = problem.map_count();
      p.left_group = weight_group;
      p.out_group = map_group;
      p.columns_at = places_of(map, p.columns, problem.image_count());
      set(p.columns_at, stride, padding, -1);
      p.depths_at = places_of(kernel, p.depth, image_size);
      set(p.depths_at, dilation, none, 1);
      p.out_outers = p.columns_at.outer;
      break;
    case ConvResult::kImage:
      p.left = tensors.weight;
      p.out = tensors.image;
      set_images(tensors.map, map, map_group);
      p.rows = channels;
      p.columns = problem.batch * image_size;
      p.depth = features * kernel_size;
      p.left_row = kernel_size;
      p.left_outer = channels * kernel_size;
      p.out_row = image_size;
      p.out_outer = problem.image_count();
      p.left_group = weight_group;
      p.out_group = image_group;
      p.columns_at = places_of(image, p.columns, problem.map_count());
      set(p.columns_at, one, padding, 1);
      p.depths_at = places_of(kernel, p.depth, map_size);
      set(p.depths_at, dilation, none, 1);
      for (int d = 0; d < 3; ++d) {
        p.depths_at.scale[d] = -p.depths_at.scale[d];
        p.divisor[d] = static_cast<int32_t>(stride.at[d]);
      }
      p.out_outers = p.columns_at.outer;
      break;
    case ConvResult::kWeight:
      p.left = tensors.map;
      p.out = tensors.weight;
      set_images(tensors.image, image, image_group);
      p.rows = features;
      p.columns = channels * kernel_size;
      p.depth = problem.batch * map_size;
      p.left_row = map_size;
      p.left_outer = problem.map_count();
      p.out_row = p.columns;
      p.left_group = map_group;
      p.out_group = weight_group;
      p.columns_at = places_of(kernel, p.columns, image_size);
      set(p.columns_at, dilation, none, 1);
      p.depths_at = places_of(map, p.depth, problem.image_count());
      set(p.depths_at, stride, padding, -1);
      p.out_outers = IndexSplitter(p.columns, p.columns);
      break;
  }
  p.out_count =
      groups * p.rows * (result == ConvResult::kWeight ? p.columns : problem.batch * p.out_row);
  return p;
}

/// Splits the depth when few results have long sums, as for the weight's gradient: into enough
/// parts to fill any GPU (kBlocks: two per SM of a GPU with 132), each at least kShortest deep. It
/// depends on the shape alone, so that the result does not depend on the GPU.
void cut_depth(Conv& p, int tile) {
  constexpr int64_t kBlocks = 132 * 2, kShortest = 512, kMost = 64;
  const int64_t tiles = pieces(p.rows, tile) * pieces(p.columns, tile) * p.groups;
  const int64_t parts = std::clamp<int64_t>(
      std::min(kBlocks / std::max<int64_t>(tiles, 1), p.depth / kShortest), 1, kMost);
  p.part = std::max<int64_t>(pieces(p.depth, parts), 1);
  p.parts = std::max<int64_t>(pieces(p.depth, p.part), 1);
}

bool is_divided(const Conv& p) {
  return std::ranges::any_of(p.divisor, [](int32_t divisor) { return divisor != 1; });
}

unsigned blocks_of(int64_t all, int64_t each) { return static_cast<unsigned>(pieces(all, each)); }

/// For groups with so few rows (depthwise convolutions) that tiles would be mostly empty.
void convolve_few_rows(ConvResult result, DType dtype, const Conv& p) {
  const unsigned rows = blocks_of(p.rows, 1), groups = blocks_of(p.groups, 1);
  if (result == ConvResult::kWeight) {
    launch(kSingle[dtype],
           {.blocks = {blocks_of(p.columns, 1), rows, groups}, .threads = 256, .shared_bytes = 0},
           p);
  } else {
    launch((is_divided(p) ? kRowDivided : kRow)[dtype],
           {.blocks = {blocks_of(p.columns, 256), rows, groups}, .threads = 256, .shared_bytes = 0},
           p);
  }
}

/// Convolves row-major tensors with our own kernels.
void convolve_rows(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors) {
  Conv p = product_of(result, problem, tensors);
  p.bias = tensors.bias;
  if (p.out_count == 0) return;
  const bool integers = !is_floating(problem.dtype);
  p.part = std::max<int64_t>(p.depth, 1);
  p.parts = 1;
  std::optional<Workspace> part_sums;
  if (p.rows <= Conv::kFewRows && !integers) return convolve_few_rows(result, problem.dtype, p);
  const bool narrow = !integers && problem.dtype != DType::kF64;
  const int tile = narrow ? conv_tile(p.rows, p.columns, p.groups) : Conv::kTile;
  if (result == ConvResult::kWeight) cut_depth(p, tile);
  if (p.parts > 1) {
    const size_t element = integers || problem.dtype == DType::kF64 ? 8 : 4;
    part_sums.emplace(static_cast<size_t>(p.parts * p.out_count) * element);
    p.part_sums = part_sums->data();
  }
  launch((is_divided(p) ? kDivided : kProduct)(tile, problem.dtype),
         {.blocks = {blocks_of(p.columns, tile), blocks_of(p.rows, tile),
                     blocks_of(p.groups * p.parts, 1)},
          .threads = 256,
          .shared_bytes = 0},
         p);
  if (p.parts == 1) return;
  launch(kJoin[problem.dtype],
         {.blocks = {blocks_for(p.out_count, 256), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

Dims channels_last(IntList sizes) {
  return sizes.size() < 3 ? contiguous_strides(sizes) : channels_last_strides(sizes);
}
bool suggests_channels_last(const In& in) {
  return lockstep::suggests_channels_last(in.sizes(), in.strides());
}

/// The convolutions of one call on tensors of any strides. cuDNN gets channels-last tensors if the
/// input or weight is channels-last; for our own kernels tensors are made row-major.
class ConvCall {
 public:
  ConvCall(const char* op, const In& input, const In& weight)
      : is_last_(suggests_channels_last(input) || suggests_channels_last(weight)),
        last_(op, kernel_stream().device, &copy_elements, &channels_last),
        rows_(op, kernel_stream().device, &copy_elements, &contiguous_strides) {}

  /// Computes `result` and writes it to its tensor in `arguments`.
  void convolve(ConvResult result, const ConvProblem& problem, const ConvArguments& arguments,
                const In& bias = {}) {
    if (problem.is_empty())
      return convolve_rows(result, problem, in(rows_, result, arguments, bias));
    for (Restrided* const format : {is_last_ ? &last_ : nullptr, &rows_}) {
      if (format == nullptr) continue;
      const bool is_last = format == &last_;
      ConvTensors tensors;
      if (!convolve_by_cudnn(result, problem, is_last,
                             [&] { return tensors = in(*format, result, arguments, bias); })) {
        continue;
      }
      if (tensors.bias != nullptr) add_bias_to(result, problem, tensors, is_last);
      return;
    }
    convolve_rows(result, problem, in(rows_, result, arguments, bias));
  }
  void gradient_of_bias(const Out& db, const In& grad);
  /// Copies results that were computed in another layout to their tensors.
  void finish() const {
    last_.finish();
    rows_.finish();
  }

 private:
  static ConvTensors in(Restrided& format, ConvResult result, const ConvArguments& arguments,
                        const In& bias) {
    const auto address = [&](ConvResult which, const TensorArg& argument) -> void* {
      if (which != result) {
        In in;
        static_cast<TensorArg&>(in) = argument;
        return format.read(in).address;
      }
      Out out;
      static_cast<TensorArg&>(out) = argument;
      return format.write(out).address;
    };
    ConvTensors tensors;
    tensors.image = address(ConvResult::kImage, arguments.image);
    tensors.weight = address(ConvResult::kWeight, arguments.weight);
    tensors.map = address(ConvResult::kMap, arguments.map);
    tensors.bias = bias.defined() ? format.read(bias).address : nullptr;
    return tensors;
  }
  static void add_bias_to(ConvResult result, const ConvProblem& problem, const ConvTensors& tensors,
                          bool is_last) {
    const bool is_map = result == ConvResult::kMap;
    const int64_t places = is_map ? problem.map_size() : problem.image_size();
    // In channels-last layout each place is treated as an image of its own.
    add_bias(is_map ? tensors.map : tensors.image, tensors.bias, problem.dtype,
             is_last ? problem.batch * places : problem.batch,
             is_map ? problem.features : problem.channels, is_last ? 1 : places);
  }

  bool is_last_;
  Restrided last_;
  Restrided rows_;
};

void convolution(const Out& out, const In& input, const In& weight, const In& bias, IntList stride,
                 IntList padding, IntList dilation, bool transposed, IntList, int64_t groups) {
  const ConvProblem problem =
      make_conv_problem(input, weight, out, stride, padding, dilation, transposed, groups);
  ConvArguments arguments{input, weight, out};
  if (transposed) std::swap(arguments.image, arguments.map);
  ConvCall call("convolution", input, weight);
  call.convolve(transposed ? ConvResult::kImage : ConvResult::kMap, problem, arguments, bias);
  call.finish();
}

/// Sums a gradient [batch, features, places...] over batch and places, in f64.
void ConvCall::gradient_of_bias(const Out& given_db, const In& given_grad) {
  const Out out = rows_.write(given_db);
  const bool is_last = is_last_ && last_.is_fit(given_grad);
  const In grad = is_last ? given_grad : rows_.read(given_grad);
  ConvBias p{};
  p.grad = grad.address;
  p.out = numbers_of(out);
  p.features = grad.size(1);
  if (p.features == 0) return;
  const int64_t all_places = count_elements(grad.sizes().subspan(2));
  const int64_t places = is_last ? 1 : all_places;  // contiguous places per channel
  p.per_feature = grad.size(0) * all_places;
  p.places = IndexSplitter(places, grad.numel);
  constexpr int64_t kShortest = 4096, kMost = 64;
  p.part = std::max(kShortest, pieces(p.per_feature, kMost));
  p.parts = pieces(p.per_feature, p.part);
  const Workspace part_sums(static_cast<size_t>(p.features * p.parts) * sizeof(double));
  p.part_sums = part_sums.data<double>();
  if (p.parts > 0) {
    launch(kBias[grad.dtype],
           {.blocks = {static_cast<unsigned>(p.features), static_cast<unsigned>(p.parts), 1},
            .threads = 256,
            .shared_bytes = 0},
           p);
  }
  launch(kBiasJoin,
         {.blocks = {static_cast<unsigned>(pieces(p.features, 256)), 1, 1},
          .threads = 256,
          .shared_bytes = 0},
         p);
}

void convolution_backward(const Out& dx, const Out& dw, const Out& db, const In& grad_output,
                          const In& input, const In& weight, std::optional<IntList>, IntList stride,
                          IntList padding, IntList dilation, bool transposed, IntList,
                          int64_t groups, BoolList) {
  const ConvProblem problem =
      make_conv_problem(input, weight, grad_output, stride, padding, dilation, transposed, groups);
  ConvCall call("convolution_backward", input, weight);
  convolve_gradients(dx, dw, grad_output, input, weight, transposed,
                     [&](ConvResult result, const ConvArguments& arguments) {
                       call.convolve(result, problem, arguments);
                     });
  if (db.defined()) call.gradient_of_bias(db, grad_output);
  call.finish();
}

}  // namespace

void add_bias(void* out, const void* bias, DType dtype, int64_t batch, int64_t channels,
              int64_t places) {
  ConvAddBias p{};
  p.out = out;
  p.bias = bias;
  p.count = batch * channels * places;
  p.places = IndexSplitter(places, p.count);
  p.channels = IndexSplitter(channels, batch * channels);
  if (p.count == 0) return;
  launch(kAddBias[dtype],
         {.blocks = {blocks_for(p.count, 256), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

LS_KERNEL(CUDA, "convolution", convolution, Strides::kAny);
LS_KERNEL(CUDA, "convolution_backward", convolution_backward, Strides::kAny);

}  // namespace lockstep::cuda
