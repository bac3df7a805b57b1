#include "text/vocabulary/model_json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_error.h"

namespace braid::text {
namespace {

// Receives the parser's events. Wanted lists go to `lists`, the rest becomes a tree.
class Handler : public nlohmann::json_sax<Json> {
 public:
  enum class Target { tree, vocab, merges };

  Handler(const std::string& source, Lists& lists, Target root)
      : source_(source), lists_(lists), target_(root) {}

  Json take() { return std::move(root_); }

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(number_integer_t v) override {
    return target_ == Target::vocab && !in_object_ ? score(double(v)) : value(v);
  }
  bool number_unsigned(number_unsigned_t v) override {
    if (target_ == Target::vocab && in_object_) return id(v);
    return target_ == Target::vocab ? score(double(v)) : value(v);
  }
  bool number_float(number_float_t v, const string_t&) override {
    return target_ == Target::vocab ? score(v) : value(v);
  }
  bool string(string_t& v) override {
    if (target_ == Target::tree) return value(std::move(v));
    const bool is_half = depth_ == 2 && texts_.size() < 2;
    const bool is_whole = depth_ == 1 && target_ == Target::merges;
    require(!in_object_ && (is_half || is_whole), source_, " has '", v, "' where ", expected(),
            " were expected");
    texts_.push_back(std::move(v));
    if (is_whole) split_merge();
    return true;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    if (target_ == Target::tree) return open(Json::object());
    require(target_ == Target::vocab && depth_ == 0, source_, " has an object where ", expected(),
            " were expected");
    in_object_ = true;
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (target_ == Target::tree) return open(Json::array());
    require(depth_ < 2 && !in_object_, source_, " has a list where ", expected(), " were expected");
    ++depth_;
    return true;
  }
  bool key(string_t& v) override {
    if (target_ != Target::tree) {
      texts_.assign(1, std::move(v));
      return true;
    }
    auto& object = *stack_.back();
    require(!object.contains(v), source_, " has the key '", v, "' twice");
    slot_ = &object[v];
    const bool in_model = stack_.size() == 2 && stack_.front()->contains("model") &&
                          &(*stack_.front())["model"] == stack_.back();
    if (in_model && v == "vocab") target_ = Target::vocab;
    if (in_model && v == "merges") target_ = Target::merges;
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    refuse_json(source_, e);
  }

 private:
  std::string_view expected() const {
    return target_ == Target::vocab ? "tokens with their ids or scores" : "pairs of tokens";
  }

  bool value(Json v) {
    if (target_ != Target::tree && depth_ == 0 && v.is_null()) return finish();
    require(target_ == Target::tree, source_, " has ", v.dump(), " where ", expected(),
            " were expected");
    place(std::move(v));
    return true;
  }

  Json* place(Json v) {
    if (stack_.empty()) return &(root_ = std::move(v));
    if (stack_.back()->is_object()) return &(*slot_ = std::move(v));
    stack_.back()->push_back(std::move(v));
    return &stack_.back()->back();
  }

  bool open(Json container) {
    require(stack_.size() < kMaxJsonDepth, source_, " nests JSON deeper than ", kMaxJsonDepth,
            " levels");
    stack_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    if (target_ == Target::tree) {
      stack_.pop_back();
      return true;
    }
    if (--depth_ == 1) return pair();
    return finish();
  }

  // Back to the tree, which keeps a null in place of the list.
  bool finish() {
    require(in_object_ || texts_.empty(), source_, " has a token alone where ", expected(),
            " were expected");
    texts_.clear();
    in_object_ = false;
    target_ = Target::tree;
    return true;
  }

  bool id(std::uint64_t v) {
    require(v <= std::uint64_t(kLargestTokenId), source_, " gives the token '", texts_[0],
            "' the id ", v, ", at most ", kLargestTokenId, " was expected");
    require(lists_.vocabulary.insert(texts_[0], std::int64_t(v)), source_, " has the token '",
            texts_[0], "' twice");
    return true;
  }

  bool score(double v) {
    require(!in_object_ && depth_ == 2 && texts_.size() == 1 && !has_score_, source_, " has ", v,
            " where ", expected(), " were expected");
    score_ = v;
    has_score_ = true;
    return true;
  }

  // The end of ["token", score] or of ["left", "right"].
  bool pair() {
    const bool is_scored = target_ == Target::vocab && texts_.size() == 1 && has_score_;
    const bool is_merge = target_ == Target::merges && texts_.size() == 2;
    require(is_scored || is_merge, source_, " has a list of another form where ", expected(),
            " were expected");
    if (is_scored) lists_.scored.push_back({std::move(texts_[0]), score_});
    if (is_merge) lists_.merges.emplace_back(std::move(texts_[0]), std::move(texts_[1]));
    texts_.clear();
    has_score_ = false;
    return true;
  }

  void split_merge() {
    const auto [left, right] = read_merge(texts_[0], source_);
    lists_.merges.emplace_back(left, right);
    texts_.clear();
  }

  const std::string& source_;
  Lists& lists_;
  Target target_;

  Json root_;
  std::vector<Json*> stack_;  // open containers of the tree
  Json* slot_ = nullptr;      // of the last key

  std::size_t depth_ = 0;  // within a list
  bool in_object_ = false;
  std::vector<std::string> texts_;  // of the pair being read
  double score_ = 0;
  bool has_score_ = false;
};

}  // namespace

Json read_model_json(std::string_view text, const std::string& source, Lists& lists) {
  Handler handler(source, lists, Handler::Target::tree);
  Json::sax_parse(text.begin(), text.end(), &handler);
  return handler.take();
}

Vocabulary read_vocabulary_json(std::string_view text, const std::string& source) {
  Lists lists;
  Handler handler(source, lists, Handler::Target::vocab);
  Json::sax_parse(text.begin(), text.end(), &handler);
  require(lists.vocabulary.size() > 0, source, " holds no vocabulary of tokens and ids");
  return std::move(lists.vocabulary);
}

std::pair<std::string_view, std::string_view> read_merge(std::string_view line,
                                                         const std::string& source) {
  const auto space = line.find(' ');
  require(space != line.npos && line.find(' ', space + 1) == line.npos, source, " has the merge '",
          line, "', two tokens with a space between were expected");
  return {line.substr(0, space), line.substr(space + 1)};
}

}  // namespace braid::text
