#include "data/tokenizers/hugging_face_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/parse_json.h"
#include "core/base/utf8.h"
#include "data/tokenizers/bpe_vocabulary.h"
#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/sentencepiece_model.pb.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;
using sentencepiece::Model;
using sentencepiece::Piece;

Json special_token(uint32_t id, const std::string& text) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

Json byte_level(bool splits_words) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", splits_words}};
}

/// A BPE model without its vocabulary; `merges` is a list of pairs.
Json bpe_model(Json merges, const Json& unknown, bool byte_fallback) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", unknown},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", byte_fallback},
          {"byte_fallback", byte_fallback},
          {"ignore_merges", false},
          {"merges", std::move(merges)}};
}

Json document(Json added, const Json& normalizer, const Json& pre_tokenizer, const Json& decoder,
              Json model) {
  return {{"version", "1.0"},          {"truncation", nullptr},
          {"padding", nullptr},        {"added_tokens", std::move(added)},
          {"normalizer", normalizer},  {"pre_tokenizer", pre_tokenizer},
          {"post_processor", nullptr}, {"decoder", decoder},
          {"model", std::move(model)}};
}

/// The files of a document without its vocabulary, and of that: an object from token to id, sorted
/// by token, which nlohmann::json makes faster than ordered_json. `special` holds "bos_token" and
/// the like.
HuggingFaceTokenizer files_of(const Json& document, nlohmann::json vocabulary,
                              const Json& special) {
  nlohmann::json whole = parse_json(document.dump());
  whole["model"]["vocab"] = std::move(vocabulary);
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"clean_up_tokenization_spaces", false},
                 {"add_prefix_space", false}};
  for (const auto& [name, token] : special.items()) config[name] = token;
  return {whole.dump() + "\n", config.dump(1) + "\n"};
}

std::string_view next_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Json replaced(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

/// All ways to merge two pieces into a third, in the order in which SentencePiece merges.
Json merges_of(const Model& model, const std::unordered_map<std::string, int>& ids) {
  struct Split {
    float score;
    int left;
    int right;
  };
  std::vector<Split> splits;
  for (const Piece& piece : model.pieces()) {
    if (piece.has_type() && piece.type() != Piece::NORMAL) continue;
    const std::string& text = piece.text();
    for (size_t at = 0; at < text.size();) {
      at += static_cast<size_t>(code_point_at(text, at).length);
      const auto left = ids.find(text.substr(0, at));
      const auto right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      splits.push_back({piece.score(), left->second, right->second});
    }
  }
  std::ranges::stable_sort(splits, [](const Split& a, const Split& b) {
    return std::tuple(-a.score, a.left, a.right) < std::tuple(-b.score, b.left, b.right);
  });
  Json merges = Json::array();
  for (const Split& split : splits) {
    merges.push_back({model.pieces(split.left).text(), model.pieces(split.right).text()});
  }
  return merges;
}

}  // namespace

std::vector<std::string> HuggingFaceTokenizer::save(const std::filesystem::path& folder) const {
  write_text(folder / kFileName, tokenizer);
  write_text(folder / kConfigName, config);
  return {kFileName, kConfigName};
}

HuggingFaceTokenizer hugging_face_bytes() {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[written_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  return files_of(document(Json::array(), nullptr, byte_level(false), byte_level(false),
                           bpe_model(Json::array(), nullptr, /*byte_fallback=*/false)),
                  std::move(vocabulary), Json::object());
}

HuggingFaceTokenizer hugging_face_bpe(std::string_view vocabulary, std::string_view merges) {
  nlohmann::json ids = parse_json(vocabulary);
  Json pairs = Json::array();
  for (bool first = true; !merges.empty(); first = false) {
    const std::string_view line = next_line(merges);
    if (line.empty() || (first && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    pairs.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  Json added = Json::array();
  Json special = Json::object();
  const std::string end(kEndOfText);
  if (const auto found = ids.find(end); found != ids.end()) {
    added.push_back(special_token(found->get<uint32_t>(), end));
    special = {{"bos_token", end}, {"eos_token", end}, {"pad_token", end}};
  }
  return files_of(document(std::move(added), nullptr, byte_level(true), byte_level(true),
                           bpe_model(std::move(pairs), nullptr, /*byte_fallback=*/false)),
                  std::move(ids), special);
}

HuggingFaceTokenizer hugging_face_sentencepiece(std::string_view bytes) {
  Model model;
  LS_ASSERT(model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  const SentencePieceModel parsed = parse_sentencepiece(bytes, "tokenizer.model");
  std::unordered_map<std::string, int> ids;
  Json added = Json::array();
  Json special = Json::object();
  std::string unknown;
  const auto name_of = [&](int id) { return model.pieces(id).text(); };
  for (int id = 0; id < model.pieces_size(); ++id) {
    const Piece& piece = model.pieces(id);
    const auto type = piece.has_type() ? piece.type() : Piece::NORMAL;
    ids.emplace(piece.text(), id);
    if (type == Piece::UNKNOWN) unknown = piece.text();
    if (type == Piece::UNKNOWN || type == Piece::CONTROL) {
      added.push_back(special_token(static_cast<uint32_t>(id), piece.text()));
    }
  }
  if (!unknown.empty()) special["unk_token"] = unknown;
  if (parsed.begin_of_text) special["bos_token"] = name_of(static_cast<int>(*parsed.begin_of_text));
  if (parsed.end_of_text) {
    const std::string end = name_of(static_cast<int>(*parsed.end_of_text));
    special["eos_token"] = end;
    special["pad_token"] = end;
  }
  const std::string mark(kSpaceMark);
  Json normalizers = Json::array();
  if (parsed.add_dummy_prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", mark}});
  normalizers.push_back(replaced(" ", mark));
  Json decoders = {replaced(mark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (parsed.add_dummy_prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  nlohmann::json vocabulary = nlohmann::json::object();
  for (const auto& [text, id] : ids) vocabulary[text] = id;
  const Json model_json = bpe_model(merges_of(model, ids), unknown.empty() ? Json() : Json(unknown),
                                    /*byte_fallback=*/true);
  return files_of(document(std::move(added), {{"type", "Sequence"}, {"normalizers", normalizers}},
                           nullptr, {{"type", "Sequence"}, {"decoders", decoders}}, model_json),
                  std::move(vocabulary), special);
}

}  // namespace lockstep::train
