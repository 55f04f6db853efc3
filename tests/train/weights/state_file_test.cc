#include "train/weights/state_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "nn/containers.h"
#include "nn/image_layers.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep::train {
namespace {

/// A file in the folder for temporary ones, removed at the end.
class StateFile : public ::testing::Test {
 protected:
  StateFile() { std::filesystem::remove(path_); }
  ~StateFile() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() +
                            testing::UnitTest::GetInstance()->current_test_info()->name() +
                            ".safetensors";
};

TEST_F(StateFile, HoldsTheStateOfAModule) {
  const nn::Sequential net(nn::Conv2d(1, 2, 1), nn::BatchNorm2d(2));
  net.forward(random_tensor({2, 1, 3, 3}));
  save(path_, net.state_dict());
  nn::Sequential other(nn::Conv2d(1, 2, 1), nn::BatchNorm2d(2));
  EXPECT_TRUE(other.load_state_dict(load(path_)).empty());
  for (const auto& [name, tensor] : net.state_dict()) {
    const Tensor found = other.state_dict().at(name);
    EXPECT_EQ(found.dtype(), tensor.dtype());
    expect_near(found, tensor, 0, 0);
  }
}

TEST_F(StateFile, StoresATensorWithSeveralNamesOnce) {
  nn::StateDict state;
  const Tensor shared = random_tensor({100});
  state.add("first", shared);
  state.add("second", shared);
  state.add("empty", zeros({0, 3}));
  save(path_, state);
  EXPECT_LT(std::filesystem::file_size(path_), 700u);
  const nn::StateDict found = load(path_);
  EXPECT_EQ(found.size(), 3u);
  expect_near(found.at("second"), shared, 0, 0);
  EXPECT_EQ(found.at("empty").shape(), "[0, 3]");
}

TEST_F(StateFile, ReportsFilesThatAreMissingOrDamaged) {
  EXPECT_THROW(load(path_), Error);
  std::ofstream(path_) << "no tensors";
  expect_error<CheckpointError>([&] { load(path_); }, path_);
}

}  // namespace
}  // namespace lockstep::train
