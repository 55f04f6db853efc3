// Models of many small tensors: their steps and their checkpoints.

#include <fmt/format.h>

#include <fstream>

#include "benchmarks/growth/growth_case.h"
#include "benchmarks/scratch_folder.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "train/run/checkpoint.h"
#include "train/trainer.h"

namespace lockstep::growth {

namespace {

config::RunConfig config_of(int64_t layers, const ScratchFolder& folder) {
  std::ofstream(folder / "text") << std::string(1000, 'a');
  return config::load_text(fmt::format(
      R"(model {{ gpt2 {{ context_length: 8 layers: {} heads: 1 width: 16 }} }}
         train {{ steps: 10 batch_size: 1 }} threads: 1
         data {{ text {{ path: "{}" held_out_bytes: 100 }} }})",
      layers, (folder / "text").string()));
}

void take_steps(int64_t layers, Meter& meter) {
  const ScratchFolder folder;
  train::Trainer trainer = train::Trainer::create(config_of(layers, folder));
  trainer.step();
  meter.start();
  for (int i = 0; i < 3; ++i) trainer.step();
  meter.stop();
}

/// Measures one of the parts of saving a checkpoint, verifying and restoring it.
enum class Part { kSave, kVerify, kRestore };
template <Part part>
void checkpoint(int64_t layers, Meter& meter) {
  const ScratchFolder folder;
  const config::RunConfig config = config_of(layers, folder);
  train::Trainer trainer = train::Trainer::create(config);
  trainer.step();
  if (part == Part::kSave) meter.start();
  const auto saved = save_checkpoint(folder / "checkpoints", trainer, config::to_text(config));
  if (part == Part::kSave) return meter.stop();
  if (part == Part::kVerify) meter.start();
  const train::CheckpointManifest manifest = train::verify_checkpoint(saved);
  if (part == Part::kVerify) return meter.stop();
  meter.start();
  restore(trainer, saved, manifest);
  meter.stop();
}

}  // namespace

std::vector<GrowthCase> tensor_cases() {
  return {{"steps", "layers of 12 tensors, 3 steps", 500, false, take_steps},
          {"save", "layers, a checkpoint", 125, false, checkpoint<Part::kSave>},
          {"verify", "layers, a checkpoint", 125, false, checkpoint<Part::kVerify>},
          {"restore", "layers, a checkpoint", 125, false, checkpoint<Part::kRestore>}};
}

}  // namespace lockstep::growth
