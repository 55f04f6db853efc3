#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "core/device/kernel_scope.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"
#include "kernels/cuda/attention/cudnn_attention.h"
#include "kernels/cuda/conv/conv.h"
#include "kernels/cuda/conv/cudnn_conv.h"
#include "tests/cuda/agreement.h"

namespace lockstep::cuda {
namespace {

TEST(CudaConv, ABiasIsAddedToEachChannel) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const Tensor before = random_tensor({3, 5, 7, 2}, dtype, 1);
    const Tensor bias = random_tensor({5}, dtype, 2);
    const Tensor want = add(before, bias.reshape({5, 1, 1}));
    Tensor got = before.to(kGpu);
    const Tensor there = bias.to(kGpu);
    {
      const KernelScope scope(kGpu);
      add_bias(got.data(), there.data(), dtype, 3, 5, 14);
    }
    expect_near(got.to(kCPU), want, rounding_of(dtype), rounding_of(dtype));
  }
}

#ifdef LS_HAS_CUDNN

using ::testing::HasSubstr;

TEST(CudnnLibrary, SaysWhatAnotherLibraryLacks) {
  const LoadedCudnn none = read_cudnn("/x/liby.so", [](const char*) -> void* { return nullptr; });
  EXPECT_THAT(none.reason, HasSubstr("/x/liby.so has no cudnnGetVersion: expected cuDNN 9."));
  EXPECT_THAT(load_cudnn("/no/such/libcudnn.so.9").reason, HasSubstr("/no/such/libcudnn.so.9"));
}

TEST(CudnnLibrary, IsNotCalledWithoutThePartThatItsFunctionsAreIn) {
  std::vector<std::string> asked;
  const auto nothing_opens = [&](const std::string& part) {
    asked.push_back(part);
    return false;
  };
  EXPECT_THAT(why_half_installed("/x/libcudnn.so.9", nothing_opens),
              HasSubstr("/x/libcudnn.so.9 is half installed: libcudnn_graph.so.9 is neither"));
  EXPECT_EQ(asked, (std::vector<std::string>{"/x/libcudnn_graph.so.9", "libcudnn_graph.so.9"}));
  for (const std::string& there : asked) {
    const auto opens = [&](const std::string& part) { return part == there; };
    EXPECT_EQ(why_half_installed("/x/libcudnn.so.9", opens), "");
  }
}

TEST(CudnnLibrary, CanBeTurnedOff) {
  ASSERT_EQ(setenv("LOCKSTEP_CUDNN", "0", 1), 0);
  EXPECT_EQ(load_cudnn().reason, "LOCKSTEP_CUDNN=0");
  unsetenv("LOCKSTEP_CUDNN");
}

AttentionParams packed_heads(int64_t heads, int64_t key_heads, int64_t rows, int64_t keys,
                             int64_t width) {
  AttentionParams p{};
  const auto set = [&](HeadTensor& tensor, int64_t all, int64_t count) {
    tensor = {nullptr, {count * all * width, width, all * width, 1}};
  };
  for (HeadTensor* tensor : {&p.query, &p.out, &p.grad_out, &p.grad_query})
    set(*tensor, heads, rows);
  for (HeadTensor* tensor : {&p.key, &p.value, &p.grad_key, &p.grad_value}) {
    set(*tensor, key_heads, keys);
  }
  p.logsumexp = {nullptr, {heads * rows, rows, 1, 0}};
  p.heads = heads;
  p.key_heads = key_heads;
  p.rows = rows;
  p.keys = keys;
  p.width = width;
  p.scale = 1;
  return p;
}

TEST(CudnnAttentionProblem, IsOfHalvesInPiecesOfSixteenBytes) {
  const AttentionParams good = packed_heads(4, 2, 9, 9, 64);
  EXPECT_TRUE(cudnn_attention(good, DType::kBF16, 2, true).has_value());
  EXPECT_FALSE(cudnn_attention(good, DType::kF32, 2, false).has_value());
  EXPECT_FALSE(cudnn_attention(packed_heads(4, 2, 9, 9, 60), DType::kF16, 2, false));
  EXPECT_FALSE(cudnn_attention(packed_heads(4, 2, 1, 1, 64), DType::kF16, 2, false));
  EXPECT_FALSE(cudnn_attention(packed_heads(4, 2, 9, 0, 64), DType::kF16, 2, false));
  AttentionParams odd = good;
  odd.key.strides[2] += 1;
  EXPECT_FALSE(cudnn_attention(odd, DType::kBF16, 2, false).has_value());
  odd = good;
  odd.value.data = reinterpret_cast<void*>(8);
  EXPECT_FALSE(cudnn_attention(odd, DType::kBF16, 2, false).has_value());
  odd = good;
  odd.logsumexp.data = reinterpret_cast<void*>(4);
  EXPECT_FALSE(cudnn_attention(odd, DType::kBF16, 2, true).has_value());
  float mask = 0;
  odd = good;
  odd.mask.data = &mask;
  EXPECT_FALSE(cudnn_attention(odd, DType::kBF16, 2, false).has_value());
}

TEST(CudnnAttentionProblem, TheStrideOfOneElementIsNoMatter) {
  AttentionParams one = packed_heads(1, 1, 8, 8, 16), other = one;
  other.query.strides[0] = 3;
  other.key.strides[1] = 0;
  EXPECT_EQ(cudnn_attention(one, DType::kF16, 1, false),
            cudnn_attention(other, DType::kF16, 1, false));
}

TEST(CudnnAttentionProblem, LongBackwardPassesGoInParts) {
  const auto part = [](int64_t batch, int64_t heads, int64_t key_heads, int64_t length) {
    const AttentionParams p = packed_heads(heads, key_heads, length, length, 64);
    const AttentionPart of = part_of_backward(*cudnn_attention(p, DType::kBF16, batch, true));
    return std::pair(of.samples, of.key_heads);
  };
  EXPECT_EQ(part(8, 16, 16, 1024), std::pair(int64_t{8}, int64_t{16}));
  EXPECT_EQ(part(8, 16, 4, 4096), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_EQ(part(8, 16, 4, 16384), std::pair(int64_t{1}, int64_t{1}));
}

/// Properties of an H200 that cuDNN asks for, so that plans can be made without one.
constexpr const char* kH200 = R"({"deviceName":"NVIDIA H200","cudaDeviceId":0,"deviceVer":900,
"driverVer":13000,"isTccDriver":0,"l2CacheSize":62914560,"maxCtasPerSM":32,
"maxRegistersPerSM":65536,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,
"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"memClockRateKHz":3201000,
"multiProcessorCount":132,"pciDeviceId":0,"regsPerBlock":65536,"reservedSharedMemoryPerBlock":1024,
"smClockRateKHz":1980000,"supportCoopLaunch":1,"totalGlobalMem":150000000000,"warpSize":32,
"maxBlockSize":[1024,1024,64],"maxGridSize":[2147483647,65535,65535]})";

constexpr const char* kH100 = R"({"deviceName":"NVIDIA H100 80GB HBM3","cudaDeviceId":0,
"deviceVer":900,"driverVer":13000,"isTccDriver":0,"l2CacheSize":52428800,"maxCtasPerSM":32,
"maxRegistersPerSM":65536,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,
"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"memClockRateKHz":2619000,
"multiProcessorCount":132,"pciDeviceId":0,"regsPerBlock":65536,"reservedSharedMemoryPerBlock":1024,
"smClockRateKHz":1980000,"supportCoopLaunch":1,"totalGlobalMem":85000000000,"warpSize":32,
"maxBlockSize":[1024,1024,64],"maxGridSize":[2147483647,65535,65535]})";

/// Without a GPU, asks this machine's cuDNN which engines would compute a graph on an H200. cuDNN
/// needs a driver library; the toolkit's stub, whose functions all fail, is enough.
class CudnnOnH200 : public ::testing::Test {
 protected:
  void SetUp() override {
    static void* const stub = [] {
      void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
      return driver != nullptr
                 ? driver
                 : dlopen("/usr/local/cuda/lib64/stubs/libcuda.so", RTLD_NOW | RTLD_LOCAL);
    }();
    static const LoadedCudnn library = load_cudnn();
    if (!library.reason.empty()) GTEST_SKIP() << library.reason;
    if (stub == nullptr) GTEST_SKIP() << "neither a driver nor the toolkit's stub of it";
    functions = &library.functions;
    properties = std::make_unique<CudnnDescriptor>(cudnn_properties(*functions, kH200));
  }

  /// The first engine that the rules allow, or null.
  std::unique_ptr<CudnnEngine> chosen(CudnnGraph& graph, const CudnnRules& rules) {
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      for (CudnnEngine& engine : graph.engines({.properties = properties.get()}, mode)) {
        if (rules.forbids(engine).empty()) return std::make_unique<CudnnEngine>(std::move(engine));
      }
    }
    return nullptr;
  }

  /// Finalises the plan of the engine that would be used. Returns "" if it came to the loading of
  /// its kernel, which the stub refuses, else what stopped it.
  std::string what_stops(CudnnGraph& graph, const CudnnRules& rules) {
    const auto engine = chosen(graph, rules);
    if (engine == nullptr) return "no engine";
    try {
      graph.plan_of({.properties = properties.get()}, *engine);
    } catch (const CudnnRefusal& refusal) {
      const std::string why = refusal.what();
      const bool loads = why.find("cuLibraryLoadData") != std::string::npos ||
                         why.find("cuModuleLoadData") != std::string::npos;
      return loads ? "" : why;
    }
    return "";
  }

  const Cudnn* functions = nullptr;
  std::unique_ptr<CudnnDescriptor> properties;
};

/// The attention of a config's model: its heads are parts of a joint projection's rows, or, with
/// rotary positions, tensors of their own in the order of the rows.
struct ModelAttention {
  const char* config;
  int64_t samples, heads, key_heads, length, width;
  bool joint;
};
constexpr ModelAttention kGpt2{"gpt2_124m", 60, 12, 12, 1024, 64, true};
constexpr ModelAttention kModelsAttention[] = {
    kGpt2, {"kjv_best", 32, 6, 6, 256, 32, false}, {"llama_8b", 1, 32, 8, 8192, 128, false}};

AttentionParams params_of(const ModelAttention& model) {
  AttentionParams p =
      packed_heads(model.heads, model.key_heads, model.length, model.length, model.width);
  p.causal = true;
  if (!model.joint) return p;
  const int64_t row = (model.heads + 2 * model.key_heads) * model.width;
  for (HeadTensor* tensor :
       {&p.query, &p.key, &p.value, &p.grad_query, &p.grad_key, &p.grad_value}) {
    tensor->strides[0] = model.length * row;
    tensor->strides[2] = row;
  }
  return p;
}

/// The part of a pass that one plan computes.
CudnnAttention problem_of(const ModelAttention& model, bool backward) {
  CudnnAttention problem =
      *cudnn_attention(params_of(model), DType::kBF16, model.samples, backward);
  if (backward) {
    const AttentionPart part = part_of_backward(problem);
    problem.heads = part.key_heads * (problem.heads / problem.key_heads);
    problem.batch = part.samples;
    problem.key_heads = part.key_heads;
  }
  return problem;
}

TEST_F(CudnnOnH200, AttentionOfTheShippedConfigsGetsAsFarAsLoadingItsKernels) {
  for (const ModelAttention& model : kModelsAttention) {
    for (const bool backward : {false, true}) {
      CudnnGraph graph(*functions);
      describe_attention(graph, problem_of(model, backward));
      EXPECT_EQ(what_stops(graph, {}), "") << model.config << (backward ? ", backward" : "");
    }
  }
}

TEST_F(CudnnOnH200, SoDoesAnH100) {
  properties = std::make_unique<CudnnDescriptor>(cudnn_properties(*functions, kH100));
  for (const bool backward : {false, true}) {
    CudnnGraph graph(*functions);
    describe_attention(graph, problem_of(kGpt2, backward));
    EXPECT_EQ(what_stops(graph, {}), "") << (backward ? "backward" : "");
  }
}

/// A convolution of ResNet-18 for 32 x 32 pixels: the first, one of a block, and those that halve
/// the image.
ConvProblem resnet_conv(DType dtype, int64_t channels, int64_t features, int64_t side,
                        int64_t kernel, int64_t stride) {
  ConvProblem problem;
  problem.dtype = dtype;
  problem.batch = 32;
  problem.channels = channels;
  problem.features = features;
  problem.image = Dims{side, side};
  problem.kernel = Dims{kernel, kernel};
  problem.map = Dims{side / stride, side / stride};
  problem.stride = Dims{stride, stride};
  problem.padding = Dims{kernel / 2, kernel / 2};
  problem.dilation = Dims{1, 1};
  return problem;
}

TEST_F(CudnnOnH200, ConvolutionsOfResnetInChannelsLastGetAsFarAsLoadingTheirKernels) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const ConvProblem& problem :
         {resnet_conv(dtype, 3, 64, 32, 3, 1), resnet_conv(dtype, 64, 64, 32, 3, 1),
          resnet_conv(dtype, 64, 128, 32, 3, 2), resnet_conv(dtype, 64, 128, 32, 1, 2)}) {
      for (const ConvResult result : {ConvResult::kMap, ConvResult::kImage, ConvResult::kWeight}) {
        const auto p = cudnn_conv(result, problem, false, true);
        ASSERT_TRUE(p.has_value());
        CudnnGraph graph(*functions);
        describe_conv(graph, *p);
        EXPECT_EQ(what_stops(graph, p->rules()), "")
            << to_string(dtype) << ", " << problem.channels << " to " << problem.features
            << " channels, kernel " << problem.kernel[0] << ", result " << static_cast<int>(result);
      }
    }
  }
}

TEST_F(CudnnOnH200, AttentionHasRepeatableEnginesBothWays) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const int64_t key_heads : {8, 2, 1}) {
      for (const auto& [rows, keys] :
           {std::pair<int64_t, int64_t>{128, 128}, {100, 100}, {1024, 1024}, {65, 130}}) {
        for (const int64_t width : {64, 128, 40}) {
          for (const bool backward : {false, true}) {
            for (const bool causal : {false, true}) {
              AttentionParams params = packed_heads(8, key_heads, rows, keys, width);
              params.causal = causal;
              const auto problem = cudnn_attention(params, dtype, 4, backward);
              ASSERT_TRUE(problem.has_value());
              CudnnGraph graph(*functions);
              describe_attention(graph, *problem);
              EXPECT_NE(chosen(graph, {}), nullptr)
                  << to_string(dtype) << ", " << key_heads << " heads of keys, " << rows
                  << " queries, " << keys << " keys, width " << width
                  << (backward ? ", backward" : "") << (causal ? ", causal" : "");
            }
          }
        }
      }
    }
  }
}

TEST_F(CudnnOnH200, TheBackwardPassOfAttentionStoresNoMoreThanItsPartMay) {
  const AttentionParams params = packed_heads(16, 4, 4096, 4096, 64);
  CudnnAttention problem = *cudnn_attention(params, DType::kBF16, 8, true);
  problem.batch = part_of_backward(problem).samples;
  CudnnGraph graph(*functions);
  describe_attention(graph, problem);
  const auto engine = chosen(graph, {});
  ASSERT_NE(engine, nullptr);
  EXPECT_LT(engine->workspace, int64_t{3} << 30);
}

TEST_F(CudnnOnH200, ConvolutionsHaveRepeatableEnginesEveryWay) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const ConvResult result : {ConvResult::kMap, ConvResult::kImage, ConvResult::kWeight}) {
      for (const size_t rank : {size_t{1}, size_t{2}, size_t{3}}) {
        for (const int64_t channels : {3, 64}) {
          SCOPED_TRACE(testing::Message()
                       << to_string(dtype) << ", result " << static_cast<int>(result) << ", "
                       << rank << " dimensions, " << channels << " channels");
          ConvProblem problem;
          problem.dtype = dtype;
          problem.batch = 4;
          problem.channels = channels;
          problem.features = 64;
          for (size_t d = 0; d < rank; ++d) {
            problem.image.push_back(14);
            problem.kernel.push_back(3);
            problem.map.push_back(7);
            problem.stride.push_back(2);
            problem.padding.push_back(1);
            problem.dilation.push_back(1);
          }
          for (const bool channels_last : {false, true}) {
            const auto p = cudnn_conv(result, problem, false, channels_last);
            ASSERT_TRUE(p.has_value());
            CudnnGraph graph(*functions);
            describe_conv(graph, *p);
            EXPECT_NE(chosen(graph, p->rules()), nullptr) << (channels_last ? "channels last" : "");
          }
        }
      }
    }
  }
}

TEST_F(CudnnOnH200, EnginesThatGiveOtherBitsInAnotherRunAreKnown) {
  ConvProblem problem;
  problem.dtype = DType::kF32;
  problem.batch = 32;
  problem.channels = 3;
  problem.features = 64;
  problem.image = Dims{56, 56};
  problem.kernel = Dims{3, 3};
  problem.map = Dims{28, 28};
  problem.stride = Dims{2, 2};
  problem.padding = Dims{1, 1};
  problem.dilation = Dims{1, 1};
  const auto p = cudnn_conv(ConvResult::kWeight, problem, false);
  CudnnGraph graph(*functions);
  describe_conv(graph, *p);
  bool known = false;
  for (const CudnnEngine& engine :
       graph.engines({.properties = properties.get()}, CUDNN_HEUR_MODE_A)) {
    if (engine.deterministic) continue;
    known = true;
    EXPECT_NE(p->rules().forbids(engine), "");
  }
  EXPECT_TRUE(known);
}

#endif  // LS_HAS_CUDNN

}  // namespace
}  // namespace lockstep::cuda
