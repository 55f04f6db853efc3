#include "train/build_data.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/error.h"
#include "data/text_data.h"
#include "data/token_data.h"
#include "data/token_shards.h"
#include "tests/data/sequences.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"

namespace lockstep::train {
namespace {

class BuildDataTest : public testing::Test {
 protected:
  BuildDataTest() {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "the cat and the dog. ";
    put_file(folder_ / "text.txt", text);
    make_bpe(the_bpe(), folder_);
    write_shard(folder_ / "train_1.bin", ShardFormat::kLlmc,
                TokenArray::copy_of(std::vector<uint32_t>(100, 258)));
    write_shard(folder_ / "train_2.bin", ShardFormat::kLlmc,
                TokenArray::copy_of(std::vector<uint32_t>(50, 'x')));
  }
  std::string quoted(const std::string& name) const {
    return "\"" + (folder_ / name).string() + "\"";
  }
  /// The token source of a run with this data message, for a model with this vocabulary size.
  std::unique_ptr<TokenSource> build(const std::string& data, int64_t vocabulary = 1000) const {
    const config::RunConfig config = config::load_text(
        "model { gpt2 { context_length: 8 layers: 1 heads: 1 width: 8 vocab_size: " +
        std::to_string(vocabulary) + " } } train { steps: 1 batch_size: 4 } data { " + data + " }");
    return build_data(
        config.data(),
        {.vocabulary = vocabulary, .seed = 1, .sequences_per_step = 4, .length = length_});
  }
  std::string text(const std::string& more) const {
    return "text { path: " + quoted("text.txt") + " cache_dir: " + quoted("cache") + " " + more +
           " }";
  }
  std::string bpe() const {
    return "bpe { vocab: " + quoted("vocab.json") + " merges: " + quoted("merges.txt") + " }";
  }
  TemporaryDirectory folder_;
  int64_t length_ = 0;
};

TEST_F(BuildDataTest, AFileOfBytesStaysAByteText) {
  const auto source = build(text("held_out_bytes: 100"));
  ASSERT_NE(dynamic_cast<const ByteText*>(source.get()), nullptr);
  EXPECT_EQ(source->validation_windows(1), 100);
  EXPECT_EQ(source->tokenizer()->name(), "byte");
  EXPECT_EQ(source->held_out_bytes_per_token(), 1.0);
}

TEST_F(BuildDataTest, ATenthIsHeldOutByDefault) {
  EXPECT_EQ(build(text(""))->validation_windows(1), 210);
}

TEST_F(BuildDataTest, ShuffledBytesAndByteTextHaveTheSameTokens) {
  const auto source = build(text("") + " order: SHUFFLED");
  const auto* data = dynamic_cast<const TokenData*>(source.get());
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->training_tokens(), 1890);
  EXPECT_EQ(data->held_out_tokens(), 210);
}

TEST_F(BuildDataTest, RandomWindowsOfTokensAndOfBytesAreTheSame) {
  std::filesystem::create_directory(folder_ / "two");
  const std::string all = file_content(folder_ / "text.txt");
  put_file(folder_ / "two/1", all.substr(0, 1000));
  put_file(folder_ / "two/2", all.substr(1000));
  const auto one = build(text(""));
  const auto two = build("text { path: " + quoted("two") + " }");
  ASSERT_NE(dynamic_cast<const TokenData*>(two.get()), nullptr);
  std::vector<int64_t> inputs(32), targets(32), other_inputs(32), other_targets(32);
  fill_sequences(*one, 5, 0, 8, inputs, targets);
  fill_sequences(*two, 5, 0, 8, other_inputs, other_targets);
  EXPECT_EQ(inputs, other_inputs);
  EXPECT_EQ(targets, other_targets);
}

TEST_F(BuildDataTest, JsonLinesAreReadAsTheConfigSays) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "{\"body\": \"the cat and the dog. \"}\n{\"body\": 1}\n";
  put_file(folder_ / "lines.jsonl", lines);
  const auto config = [&](const std::string& more) {
    return "text { path: " + quoted("lines.jsonl") + " cache_dir: '' " + more + " }";
  };
  EXPECT_TRUE(says(message_of<DataError>([&] { build(config("json_lines { field: 'body' }")); }),
                   "lines.jsonl:2: \"body\" is a number: expected a string"));
  const auto skipping = build(config("json_lines { field: 'body' skip_damaged_lines: true }"));
  EXPECT_EQ(dynamic_cast<const TokenData&>(*skipping).training_tokens(), 1980);  // 21 + 1 of each
  ASSERT_EQ(skipping->notes().size(), 1u);
  EXPECT_TRUE(says(skipping->notes()[0], "skipped 100 damaged lines"));
  const auto joined =
      build(config("json_lines { field: 'body' skip_damaged_lines: true separator: '-' }"
                   " held_out_bytes: 100 tokenizer { " +
                   bpe() + " }"));
  std::vector<int64_t> inputs(32), targets(32);
  joined->sequence(0, 0, inputs, targets);
  const std::string text =
      decode(*joined->tokenizer(), std::vector<uint32_t>(inputs.begin(), inputs.end()));
  EXPECT_TRUE(says(text, "dog. -the"));
}

TEST_F(BuildDataTest, BpeTextIsTokenisedOnceAndCountsItsBytes) {
  const std::string config = text("held_out_bytes: 210 tokenizer { " + bpe() + " }");
  const auto source = build(config);
  EXPECT_EQ(source->tokenizer()->name(), "bpe");
  EXPECT_NEAR(
      source->held_out_bytes_per_token() * static_cast<double>(source->validation_windows(1)), 210,
      1e-9);
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "cache"));
  EXPECT_EQ(build(config)->validation_windows(1), source->validation_windows(1));
}

TEST_F(BuildDataTest, SentencePieceIsTrainedOnTheTextAndKept) {
  const std::string config = text("tokenizer { sentencepiece { vocab_size: 300 } }");
  const auto source = build(config);
  EXPECT_EQ(source->tokenizer()->name(), "sentencepiece");
  EXPECT_LE(source->tokenizer()->vocabulary(), 300);
  source->tokenizer()->save(folder_.path());
  EXPECT_EQ(build(config)->tokenizer()->identity(), source->tokenizer()->identity());
  const auto same =
      build(text("tokenizer { sentencepiece { model: " + quoted("tokenizer.model") + " } }"));
  EXPECT_EQ(same->tokenizer()->identity(), source->tokenizer()->identity());
}

TEST_F(BuildDataTest, TokenizersOfHuggingFaceServeTextAndShards) {
  build(text("tokenizer { " + bpe() + " }"))->tokenizer()->save(folder_.path());
  const std::string tokenizer = "hugging_face { file: " + quoted("tokenizer.json") + " }";
  const auto source = build(text("tokenizer { " + tokenizer + " }"));
  EXPECT_EQ(source->tokenizer()->name(), "hugging_face");
  EXPECT_EQ(source->tokenizer()->vocabulary(), 263);
  EXPECT_EQ(source->fingerprint(), build(text("tokenizer { " + bpe() + " }"))->fingerprint());
  const auto shards = build("shards { train: " + quoted("train_1.bin") + " " + tokenizer + " }");
  EXPECT_EQ(shards->tokenizer()->identity(), source->tokenizer()->identity());
  EXPECT_TRUE(
      says(message_of<ConfigError>([&] { build(text("tokenizer { hugging_face { file: '' } }")); }),
           "data.text.tokenizer.hugging_face.file is empty"));
}

TEST_F(BuildDataTest, AMixtureHasTextsAndShardsOfOneTokenizer) {
  put_file(folder_ / "lines.jsonl", "{\"body\": \"the aa the aa the aa the aa the aa\"}\n");
  const std::string sources =
      " cache_dir: '' source { text { path: " + quoted("text.txt") + " held_out_bytes: 100 } }" +
      " source { text { path: " + quoted("lines.jsonl") + " json_lines { field: 'body' } }" +
      " weight: 0.5 } source { shards { train: " + quoted("train_1.bin") + " } weight: 0.5 }";
  const auto source = build("mixture { " + bpe() + sources + " }");
  EXPECT_EQ(source->tokenizer()->name(), "bpe");
  EXPECT_EQ(source->vocabulary(), 1000);
  EXPECT_GT(source->validation_windows(1), 30);
  std::map<std::string, int> files;
  for (int64_t step = 0; step < 10; ++step) {
    for (const SampleOrigin& origin : source->origins(step, 4, 8)) ++files[origin.file];
  }
  EXPECT_NEAR(files[(folder_ / "text.txt").string()], 20, 2);
  EXPECT_NEAR(files[(folder_ / "lines.jsonl").string()], 10, 2);
  EXPECT_NEAR(files[(folder_ / "train_1.bin").string()], 10, 2);
  // Trained on all texts together; bytes, if nothing is said.
  EXPECT_EQ(build("mixture { bpe { vocab_size: 270 }" + sources + " }")->tokenizer()->vocabulary(),
            270);
  EXPECT_EQ(build("mixture {" + sources + " }")->tokenizer()->name(), "byte");
}

TEST_F(BuildDataTest, AMixtureHasExamplesBesideTexts) {
  length_ = 8;
  std::string sums, names;
  for (int i = 0; i < 20; ++i) {
    sums += fmt::format("{{\"prompt\": \"{}+1=\", \"completion\": \"{}\"}}\n", i, i + 1);
    names += fmt::format("{{\"q\": \"n{}\", \"a\": \"b\"}}\n", i);
  }
  put_file(folder_ / "sums.jsonl", sums);
  put_file(folder_ / "names.jsonl", names);
  const auto source =
      build("mixture { cache_dir: '' source { examples { path: " + quoted("sums.jsonl") +
            " rows: PADDED } weight: 2 } source { examples { path: " + quoted("names.jsonl") +
            " completion { prompt: 'q' completion: 'a' } held_out_examples: 3 rows: PADDED } }" +
            " source { text { path: " + quoted("text.txt") + " held_out_bytes: 80 } } }");
  EXPECT_EQ(source->tokenizer()->name(), "byte");
  std::map<std::string, int> files;
  for (int64_t step = 0; step < 10; ++step) {
    const std::vector<SampleOrigin> origins = source->origins(step, 4, 8);
    for (int64_t i = 0; i < 4; ++i) {
      const std::string file =
          std::filesystem::path(origins[static_cast<size_t>(i)].file).filename();
      ++files[file];
      std::vector<int64_t> inputs(8), targets(8);
      source->sequence(step, i, inputs, targets);
      const auto count = std::ranges::count_if(targets, [](int64_t t) { return t >= 0; });
      const std::vector<int64_t> documents = source->documents(step, i, 8);
      if (file == "text.txt") {
        EXPECT_EQ(count, 8);
        EXPECT_EQ(documents, (std::vector<int64_t>{8}));
      } else {
        EXPECT_LE(count, 3);  // a completion and its end
        // The example, and padding behind it.
        EXPECT_LE(documents.size(), 2U);
        EXPECT_EQ(std::accumulate(documents.begin(), documents.end(), int64_t{0}), 8);
      }
    }
  }
  EXPECT_NEAR(files["sums.jsonl"], 20, 2);
  EXPECT_NEAR(files["names.jsonl"], 10, 2);
  EXPECT_NEAR(files["text.txt"], 10, 2);
  // The last tenth of the sums, three names, and 80 bytes.
  EXPECT_EQ(source->validation_windows(8), 2 + 3 + 10);
  EXPECT_EQ(source->held_out_tokens(), 2 * 3 + 3 * 2 + 80);
  EXPECT_EQ(source->validation_documents(2, 8), (std::vector<int64_t>{5, 3}));
  EXPECT_FALSE(source->sample_start(1).empty());
  EXPECT_EQ(source->notes().size(), 2U);
}

TEST_F(BuildDataTest, WrongMixturesAreRefusedByTheirPlace) {
  const auto complaint = [&](const std::string& mixture) {
    return message_of<ConfigError>([&] { build("mixture { " + mixture + " }"); });
  };
  const std::string shards = "source { shards { train: " + quoted("train_1.bin") + " } ";
  EXPECT_TRUE(says(complaint(""), "data.mixture has no source: expected source { text { ... } }"));
  EXPECT_TRUE(says(
      complaint(shards + "} source { weight: 1 }"),
      "data.mixture.source[1] needs one source: expected text {} or shards {} or examples {}"));
  EXPECT_TRUE(says(complaint(shards + "} source { text { path: '' } }"),
                   "data.mixture.source[1].text.path is empty"));
  EXPECT_TRUE(says(complaint(shards + "weight: 0 }"),
                   "data.mixture.source[0].weight is 0: expected a number above 0"));
  EXPECT_TRUE(
      says(complaint(shards + "} bpe { vocab_size: 300 }"), "has no text to train a token"));
  const std::string examples = "source { examples { path: " + quoted("text.txt") + " ";
  EXPECT_TRUE(says(complaint("source { examples { path: '' } }"),
                   "data.mixture.source[0].examples.path is empty"));
  EXPECT_TRUE(says(complaint(shards + "} " + examples + "completion { prompt: '' } } }"),
                   "data.mixture.source[1].examples.completion.prompt is empty"));
  EXPECT_TRUE(says(complaint(examples + "} } bpe { vocab_size: 300 }"),
                   "a mixture of examples has no text to train a tokenizer on"));
  EXPECT_EQ(build("mixture { " + shards + "} }")->tokenizer(), nullptr);
}

TEST_F(BuildDataTest, AProgramIsToldOfTheRunAndHasTheTokenizerOfTheConfig) {
  const std::string log = (folder_ / "log").string();
  put_file(folder_ / "program.sh",
           "read -r begin; echo \"$begin\" > " + log + "; echo '{\"identity\": \"shell\"}'\n");
  const std::string program = "program { command: 'sh " + (folder_ / "program.sh").string() + "' ";
  const auto source = build(program + bpe() + " }");
  EXPECT_EQ(file_content(log),
            "{\"begin\":{\"length\":0,\"protocol\":1,\"seed\":1,\"sequences_per_step\":4,"
            "\"vocabulary\":1000}}\n");
  ASSERT_NE(source->tokenizer(), nullptr);
  EXPECT_EQ(source->tokenizer()->name(), "bpe");
  expect_error<DataError>([&] { source->validation_windows(8); }, "it has ended with status 0");
  EXPECT_EQ(build(program + "}")->tokenizer(), nullptr);
  expect_error<ConfigError>([&] { build(program + bpe() + " }", 100); },
                            "[data] the bpe tokenizer");
}

TEST_F(BuildDataTest, ShardsComeByPattern) {
  const auto source = build("shards { train: " + quoted("train_*.bin") + " }");
  const auto* data = dynamic_cast<const TokenData*>(source.get());
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->training_tokens(), 150);
  EXPECT_EQ(data->validation_windows(8), 0);
  EXPECT_EQ(data->tokenizer(), nullptr);
}

TEST_F(BuildDataTest, ShardsAreValidatedOnOtherShardsOrTheirTail) {
  const auto other = build("shards { train: " + quoted("train_1.bin") +
                           " validation: " + quoted("train_2.bin") + " " + bpe() + " }");
  EXPECT_EQ(other->validation_windows(1), 49);
  EXPECT_EQ(other->held_out_bytes_per_token(), 1.0);
  const auto tail = build("shards { train: " + quoted("train_*.bin") + " held_out_tokens: 10 }");
  EXPECT_EQ(tail->validation_windows(1), 10);
  EXPECT_EQ(dynamic_cast<const TokenData&>(*tail).training_tokens(), 140);
  EXPECT_TRUE(says(message_of<DataError>([&] {
                     build("shards { train: " + quoted("train_1.bin") + " held_out_tokens: 100 }");
                   }),
                   "cannot hold out 100 tokens of the last shard's 100"));
}

TEST_F(BuildDataTest, ASingleTokenOfShardsMayBeHeldOut) {
  const auto source = build("shards { train: " + quoted("train_*.bin") + " held_out_tokens: 1 }");
  EXPECT_EQ(source->validation_windows(1), 1);
  EXPECT_EQ(dynamic_cast<const TokenData&>(*source).training_tokens(), 149);
}

TEST_F(BuildDataTest, BadInputEndsInTheRightError) {
  const auto data_error = [&](const std::string& data) {
    return message_of<DataError>([&] { build(data); });
  };
  EXPECT_TRUE(says(data_error("text { path: " + quoted("gone") + " }"), "gone: No such file"));
  EXPECT_TRUE(says(data_error("shards { train: " + quoted("gone*") + " }"), "no file matches"));
  EXPECT_TRUE(says(data_error("shards { train: " + quoted("text.txt") + " }"), "wrong magic"));
  EXPECT_TRUE(says(data_error("shards { format: NANOGPT train: " + quoted("train_1.bin") + " }"),
                   "read it with the format llmc"));
  EXPECT_TRUE(says(data_error(text("held_out_bytes: 2100")), "cannot hold out 2100 bytes"));
  EXPECT_TRUE(says(data_error(text("held_out_bytes: 2100 tokenizer { " + bpe() + " }")),
                   "cannot hold out 2100 bytes"));
  EXPECT_TRUE(says(data_error(text("tokenizer { sentencepiece { vocab_size: 262 } }")),
                   "too small for this text"));
  put_file(folder_ / "vocab.json", "{");
  EXPECT_TRUE(says(data_error(text("tokenizer { " + bpe() + " }")), "vocab.json: it is no JSON"));
}

TEST_F(BuildDataTest, AModelWithFewerTokensThanTheTokenizerIsRefused) {
  EXPECT_TRUE(
      says(message_of<ConfigError>([&] { build(text("tokenizer { " + bpe() + " }"), 256); }),
           "bpe tokenizer has 263 tokens: expected a model with vocab_size 263 or more"));
  EXPECT_TRUE(says(message_of<ConfigError>([&] {
                     build(text("tokenizer { sentencepiece { vocab_size: 300 } }"), 299);
                   }),
                   "model.gpt2.vocab_size is 299: expected at least "
                   "data.text.tokenizer.sentencepiece.vocab_size, which is 300"));
}

TEST_F(BuildDataTest, ChoicesWithoutTheirFilesAreRefused) {
  const auto config_error = [&](const std::string& data) {
    return message_of<ConfigError>([&] { build(data); });
  };
  EXPECT_TRUE(says(config_error("shards {}"), "data.shards.train is required"));
  EXPECT_TRUE(says(config_error("shards { train: '' }"), "data.shards.train is empty"));
  EXPECT_TRUE(says(config_error(text("tokenizer { bpe { vocab: 'v' } }")),
                   "data.text.tokenizer.bpe.merges is empty"));
}

TEST_F(BuildDataTest, BpeIsTrainedOnTheTextAndKept) {
  const auto trained = [&](int vocabulary) {
    return build(text(fmt::format("tokenizer {{ bpe {{ vocab_size: {} }} }}", vocabulary)));
  };
  const auto entries = [&] {
    std::set<std::string> names;
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder_ / "cache")) {
      if (each.is_regular_file()) names.insert(each.path().filename().string());
    }
    return names;
  };
  const auto first = trained(260);
  EXPECT_EQ(first->tokenizer()->name(), "bpe");
  EXPECT_LE(first->tokenizer()->vocabulary(), 260);
  EXPECT_GT(first->tokenizer()->vocabulary(), 256) << "there are merges";
  const std::string line = "the cat and the dog. ";
  EXPECT_LT(encode(*first->tokenizer(), line).size(), line.size());
  EXPECT_EQ(decode(*first->tokenizer(), encode(*first->tokenizer(), line)), line);
  const std::set<std::string> before = entries();
  const auto again = trained(260);
  EXPECT_EQ(again->tokenizer()->identity(), first->tokenizer()->identity());
  EXPECT_EQ(encode(*again->tokenizer(), line), encode(*first->tokenizer(), line));
  EXPECT_EQ(entries(), before) << "nothing was trained again";
  EXPECT_NE(trained(258)->tokenizer()->identity(), first->tokenizer()->identity())
      << "the size is a part of the key";
  put_file(folder_ / "text.txt", std::string(500, 'z'));
  EXPECT_NE(trained(260)->tokenizer()->identity(), first->tokenizer()->identity())
      << "so is the text";
}

TEST_F(BuildDataTest, TokenizersAreNotTrainedOnWhatIsNoText) {
  put_file(folder_ / "text.txt", std::string(100, '\0'));
  for (const char* kind : {"bpe", "sentencepiece"}) {
    EXPECT_TRUE(says(message_of<DataError>([&] {
                       build(text(fmt::format("tokenizer {{ {} {{ vocab_size: 300 }} }}", kind)));
                     }),
                     "text.txt: expected text, got a zero byte at byte 0."))
        << kind;
  }
}

TEST_F(BuildDataTest, AModelWithAsManyTokensAsTheTokenizerIsEnough) {
  EXPECT_NE(build(text("tokenizer { " + bpe() + " }"), 263), nullptr);
  EXPECT_TRUE(says(
      message_of<ConfigError>(
          [&] { build("shards { train: " + quoted("train_1.bin") + " " + bpe() + " }", 262); }),
      "[data] the bpe tokenizer has 263 tokens: expected a model with vocab_size 263 or more, got "
      "262. Set vocab_size of the model."));
}

TEST_F(BuildDataTest, TheTailOfShardsBeginsWithTheTokenBeforeIt) {
  std::vector<uint32_t> tokens(20);
  std::iota(tokens.begin(), tokens.end(), 1);
  write_shard(folder_ / "count.bin", ShardFormat::kLlmc, TokenArray::copy_of(tokens));
  const auto source = build("shards { train: " + quoted("count.bin") + " held_out_tokens: 4 }");
  EXPECT_EQ(dynamic_cast<const TokenData&>(*source).training_tokens(), 16);
  std::vector<int64_t> inputs(4), targets(4);
  EXPECT_EQ(fill_validation(*source, 0, 4, inputs, targets), 4);
  EXPECT_EQ(inputs, (std::vector<int64_t>{16, 17, 18, 19}));
  EXPECT_EQ(targets, (std::vector<int64_t>{17, 18, 19, 20}));
}

}  // namespace
}  // namespace lockstep::train
