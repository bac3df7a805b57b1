#include "text/vocabulary/model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace braid::text {

const Vocabulary& vocabulary_of(const Model& model) {
  return std::visit([](const auto& m) -> const Vocabulary& { return m.vocabulary(); }, model);
}

std::size_t size_of(const Model& model) {
  return std::visit([](const auto& m) { return m.size(); }, model);
}

void encode(const Model& model, std::string_view text, std::vector<std::int64_t>& ids) {
  std::visit([&](const auto& m) { m.encode(text, ids); }, model);
}

BpeOptions read_bpe_options(const Json& json, const std::string& source) {
  const JsonObject object(json, source);
  require(object.number_or("dropout", 0) == 0, source,
          " has a BPE dropout, with which equal texts become different tokens");
  BpeOptions options;
  options.continuing_prefix = object.string_or("continuing_subword_prefix", "");
  options.end_suffix = object.string_or("end_of_word_suffix", "");
  if (object.has("unk_token")) options.unk_token = object.string("unk_token");
  options.fuse_unk = object.flag_or("fuse_unk", false);
  options.byte_fallback = object.flag_or("byte_fallback", false);
  options.ignore_merges = object.flag_or("ignore_merges", false);
  return options;
}

Unigram::Options read_unigram_options(const Json& json, const std::string& source) {
  const JsonObject object(json, source);
  Unigram::Options options{.byte_fallback = object.flag_or("byte_fallback", false)};
  if (object.has("unk_id")) options.unk_id = object.integer("unk_id", 0, INT32_MAX);
  return options;
}

Bpe make_bpe(Lists lists, BpeOptions options, const std::string& source) {
  require(lists.vocabulary.size() > 0, source, " has no vocabulary of tokens and ids");
  const Bpe::Merges merges(lists.merges.begin(), lists.merges.end());
  return {std::move(lists.vocabulary), merges, std::move(options), source};
}

Unigram make_unigram(Lists lists, Unigram::Options options, const std::string& source) {
  require(!lists.scored.empty(), source, " has no vocabulary of tokens and scores");
  return {std::move(lists.scored), options, source};
}

Model make_model(Lists lists, const Json& json, const std::string& source) {
  const JsonObject object(json, source);
  const auto type = object.string_or("type", "");
  if (type == "Unigram")
    return make_unigram(std::move(lists), read_unigram_options(json, source), source);
  if (type == "BPE") return make_bpe(std::move(lists), read_bpe_options(json, source), source);
  require(type == "WordLevel", source, " has a model of type '", type,
          "', BPE, Unigram or WordLevel was expected");
  std::optional<std::string> unk;
  if (object.has("unk_token")) unk = object.string("unk_token");
  return WordLevel(std::move(lists.vocabulary), unk);
}

Bpe read_bpe_files(std::string_view vocab, std::string_view merges, BpeOptions options,
                   const std::string& folder) {
  const auto source = folder + "/merges.txt";
  Bpe::Merges pairs;
  for (std::size_t at = 0; at < merges.size();) {
    const auto end = std::min(merges.find('\n', at), merges.size());
    auto line = merges.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("#version")) pairs.push_back(read_merge(line, source));
    at = end + 1;
  }
  return {read_vocabulary_json(vocab, folder + "/vocab.json"), pairs, std::move(options), folder};
}

}  // namespace braid::text
