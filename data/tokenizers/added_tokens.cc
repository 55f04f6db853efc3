#include "data/tokenizers/added_tokens.h"

#include <algorithm>

#include "core/base/utf8.h"
#include "data/tokenizers/unicode_classes.h"

namespace lockstep::train {
namespace {

bool is_white(const CodePoint& point) {
  return point.valid && char_class(point.value) == CharClass::kSpace;
}

/// Where the white space at the end of `text` begins.
size_t white_end_begin(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t at = begin - 1;
    while (at > 0 && continues_utf8(text[at])) --at;
    const CodePoint point = code_point_at(text, at);
    if (!is_white(point) || at + static_cast<size_t>(point.length) != begin) break;
    begin = at;
  }
  return begin;
}

/// Length of the white space at the start of `text`.
size_t white_start(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (!is_white(point)) break;
    at += static_cast<size_t>(point.length);
  }
  return at;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(const std::vector<TokenizerJson::Added>& tokens,
                                   bool normalized) {
  for (const TokenizerJson::Added& token : tokens) {
    if (token.normalized == normalized) tokens_.push_back(token);
  }
  std::ranges::stable_sort(tokens_, std::ranges::greater{},
                           [](const TokenizerJson::Added& token) { return token.text.size(); });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    by_first_byte_[static_cast<unsigned char>(tokens_[i].text.front())].push_back(i);
    all_special_ = all_special_ && tokens_[i].special;
  }
}

const TokenizerJson::Added* AddedTokenFinder::find(std::string_view text, size_t at) const {
  for (const size_t i : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    if (text.substr(at).starts_with(tokens_[i].text)) return &tokens_[i];
  }
  return nullptr;
}

std::vector<AddedTokenFinder::Part> AddedTokenFinder::parts(std::string_view text,
                                                            bool find_special) const {
  if (tokens_.empty() || (all_special_ && !find_special)) return {{text}};
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const TokenizerJson::Added* const token = find(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->text.size();
    at = end;  // tokens that are taken for text hide those that overlap them, too
    if (token->special && !find_special) continue;
    if (token->left) begin = std::max(done, white_end_begin(text.substr(0, begin)));
    if (token->right) end += white_start(text.substr(end));
    if (done < begin) parts.push_back({text.substr(done, begin - done)});
    parts.push_back({text.substr(begin, end - begin), token->id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done)});
  return parts;
}

}  // namespace lockstep::train
