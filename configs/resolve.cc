#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "configs/field.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/check.h"

namespace lockstep::config {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

constexpr const char* kDefault = "default";
constexpr size_t kLongestName = 128;

bool holds_fields(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

/// Reports at the place that set `path`, else at the nearest message around it that somebody wrote,
/// else at the last file.
[[noreturn]] void fail(const Origins& origins, std::string path, std::string problem) {
  while (true) {
    const auto found = origins.find(path);
    if (found != origins.end() && found->second != kDefault) {
      throw SourceError(found->second, std::move(problem));
    }
    if (path.empty()) throw SourceError("", std::move(problem));
    const size_t dot = path.rfind('.');
    path.resize(dot == std::string::npos ? 0 : dot);
  }
}

void set_default(pb::Message& message, const FieldDescriptor& field, std::string_view text,
                 const std::string& path, Origins& origins) {
  LS_ASSERT(assign(message, field, text));
  origins[path] = kDefault;
}

std::string members(const pb::OneofDescriptor& choice) {
  std::vector<std::string> names;
  for (int i = 0; i < choice.field_count(); ++i) names.push_back(choice.field(i)->name() + " {}");
  return fmt::format("{}", fmt::join(names, " or "));
}

/// Chooses the default member of every oneof and sets the scalars that carry a default_value.
void fill(pb::Message& message, const std::string& path, Origins& origins) {
  const pb::Descriptor& type = *message.GetDescriptor();
  const pb::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
    const pb::OneofDescriptor& choice = *type.oneof_decl(i);
    if (reflection.HasOneof(message, &choice)) continue;
    if (choice.options().GetExtension(required_choice)) {
      fail(origins, path,
           fmt::format("{} needs one {}: expected {}.", path, choice.name(), members(choice)));
    }
    const std::string& name = choice.options().GetExtension(default_choice);
    if (name.empty()) continue;
    const FieldDescriptor* member = type.FindFieldByName(name);
    LS_ASSERT(member != nullptr && member->containing_oneof() == &choice);
    reflection.MutableMessage(&message, member);
    origins[join_path(path, name)] = kDefault;
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string field_path = join_path(path, field.name());
    const bool is_set = !field.is_repeated() && reflection.HasField(message, &field);
    if (field.is_repeated() || (field.real_containing_oneof() != nullptr && !is_set)) continue;
    if (!is_set && field.options().GetExtension(required)) {
      fail(
          origins, field_path,
          fmt::format("{} is required: expected {}{}{}. Set it in the file or with --set.",
                      field_path, field.name(), holds_fields(field) ? " " : ": ", expected(field)));
    }
    if (holds_fields(field)) {
      if (!is_set) origins[field_path] = kDefault;
      fill(*reflection.MutableMessage(&message, &field), field_path, origins);
    } else if (!is_set && field.options().HasExtension(default_value)) {
      set_default(message, field, field.options().GetExtension(default_value), field_path, origins);
    }
  }
}

/// Checks every set scalar by itself, and keeps the origins of what is set.
void check_values(const pb::Message& message, const std::string& path, const Origins& origins,
                  Origins& kept) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string field_path = join_path(path, field->name());
    if (const auto origin = origins.find(field_path); origin != origins.end()) {
      kept.insert(*origin);
    }
    if (field->is_repeated()) continue;
    if (holds_fields(*field)) {
      check_values(message.GetReflection()->GetMessage(message, field), field_path, origins, kept);
    } else if (std::string problem = violation(field_path, message, *field); !problem.empty()) {
      fail(origins, field_path, std::move(problem));
    }
  }
}

bool fits_a_folder_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

std::string name_from(const std::string& file) {
  std::string name = std::filesystem::path(file).stem().string().substr(0, kLongestName - 3);
  for (char& c : name) c = fits_a_folder_name(c) ? c : '_';
  if (name.empty() || name[0] == '.' || name[0] == '-') name = "run" + name;
  return name;
}

/// Defaults that follow from other values. Those are already known to lie in range.
void derive(RunConfig& config, Origins& origins) {
  const auto derived = [&](pb::Message& message, const std::string& path,
                           const std::string& value) {
    const std::string name = path.substr(path.rfind('.') + 1);
    const FieldDescriptor& field = *message.GetDescriptor()->FindFieldByName(name);
    if (message.GetReflection()->HasField(message, &field)) return;
    set_default(message, field, value, path, origins);
  };
  derived(config, "name", name_from(origins[""]));
  if (config.model().has_llama()) {
    LlamaConfig& llama = *config.mutable_model()->mutable_llama();
    const int64_t third = 3 * 64;  // 8/3 width in units of 64, rounded up
    const int64_t hidden = (8 * llama.width() + third - 1) / third * 64;
    derived(llama, "model.llama.kv_heads", fmt::format("{}", llama.heads()));
    derived(llama, "model.llama.hidden_width", fmt::format("{}", hidden));
  }
  TrainConfig& train = *config.mutable_train();
  derived(train, "train.micro_batch_size", fmt::format("{}", train.batch_size()));
  derived(*config.mutable_schedule(), "schedule.decay_steps", fmt::format("{}", train.steps()));
}

void check_heads(const std::string& path, int64_t width, int64_t heads, const Origins& origins) {
  if (width % heads == 0) return;
  fail(origins, path + ".heads",
       fmt::format("{}.heads does not divide the width: expected a divisor of {}, got {}.", path,
                   width, heads));
}

/// What can be known of a tokenizer's vocabulary before its files are read.
void check_vocabulary(const DataConfig& data, const std::string& model, int64_t vocab_size,
                      const Origins& origins) {
  if (!data.has_text()) return;
  const TokenizerConfig& tokenizer = data.text().tokenizer();
  if (tokenizer.has_byte() && vocab_size < 256) {
    fail(origins, model + ".vocab_size",
         fmt::format("{}.vocab_size is {}: text is read as bytes, so expected at least 256.", model,
                     vocab_size));
  }
  const SentencePieceConfig& pieces = tokenizer.sentencepiece();
  if (tokenizer.has_sentencepiece() && pieces.model().empty() && vocab_size < pieces.vocab_size()) {
    fail(origins, model + ".vocab_size",
         fmt::format("{}.vocab_size is {}: expected at least data.text.tokenizer.sentencepiece."
                     "vocab_size, which is {}.",
                     model, vocab_size, pieces.vocab_size()));
  }
}

void check_model(const RunConfig& config, const Origins& origins) {
  const bool is_gpt2 = config.model().has_gpt2();
  const std::string path = is_gpt2 ? "model.gpt2" : "model.llama";
  const LlamaConfig& llama = config.model().llama();
  const Gpt2Config& gpt2 = config.model().gpt2();
  check_heads(path, is_gpt2 ? gpt2.width() : llama.width(), is_gpt2 ? gpt2.heads() : llama.heads(),
              origins);
  if (!is_gpt2) {
    if (llama.heads() % llama.kv_heads() != 0) {
      fail(origins, path + ".kv_heads",
           fmt::format("{}.kv_heads does not divide the heads: expected a divisor of {}, got {}.",
                       path, llama.heads(), llama.kv_heads()));
    }
    if (llama.width() / llama.heads() % 2 != 0) {
      fail(
          origins, path + ".heads",
          fmt::format("{}: rotary positions turn pairs, so width / heads must be even: got {} / {} "
                      "= {}.",
                      path, llama.width(), llama.heads(), llama.width() / llama.heads()));
    }
  }
  const int64_t vocab_size = is_gpt2 ? gpt2.vocab_size() : llama.vocab_size();
  check_vocabulary(config.data(), path, vocab_size, origins);
}

void check_train(const TrainConfig& train, const Origins& origins) {
  if (train.batch_size() % train.micro_batch_size() != 0) {
    fail(origins, "train.micro_batch_size",
         fmt::format("train.micro_batch_size does not divide the batch: expected a divisor of {}, "
                     "got {}.",
                     train.batch_size(), train.micro_batch_size()));
  }
  const int64_t micro_batches = train.batch_size() / train.micro_batch_size();
  if (micro_batches % train.leaves() != 0) {
    fail(origins, "train.leaves",
         fmt::format("train.leaves does not divide the number of micro-batches (batch_size / "
                     "micro_batch_size = {} / {} = {}): got {}. Choose smaller micro-batches or "
                     "fewer leaves.",
                     train.batch_size(), train.micro_batch_size(), micro_batches, train.leaves()));
  }
}

void check_texts(const RunConfig& config, const Origins& origins) {
  const std::string& name = config.name();
  bool good = !name.empty() && name[0] != '.' && name[0] != '-' && name.size() <= kLongestName;
  for (const char c : name) good = good && fits_a_folder_name(c);
  if (!good) {
    fail(origins, "name",
         fmt::format("name is {:?}: expected up to {} letters, digits, dots, dashes and "
                     "underscores, starting with none of dot and dash.",
                     name, kLongestName));
  }
  if (config.data().has_text() && config.data().text().path().empty()) {
    fail(origins, "data.text.path", "data.text.path is empty: expected the path of a file.");
  }
  if (config.data().has_shards() && config.data().shards().train().empty()) {
    fail(origins, "data.shards.train", "data.shards.train is empty: expected the path of a file.");
  }
}

}  // namespace

void resolve(RunConfig& config, Origins& origins) {
  Origins kept;
  fill(config, "", origins);
  check_values(config, "", origins, kept);
  derive(config, origins);
  check_values(config, "", origins, kept);
  check_model(config, origins);
  check_train(config.train(), origins);
  check_texts(config, origins);
  if (config.optimizer().sgd().nesterov() && config.optimizer().sgd().momentum() == 0) {
    fail(origins, "optimizer.sgd.nesterov",
         "optimizer.sgd.nesterov needs momentum: expected optimizer.sgd.momentum above 0, got 0.");
  }
  kept.insert({"", origins[""]});
  origins = std::move(kept);
}

}  // namespace lockstep::config
