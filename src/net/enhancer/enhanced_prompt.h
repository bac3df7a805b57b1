// Reads what an enhancer wrote as its model's card says: a caption, or a JSON object with one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "net/enhancer/enhancer_failure.h"

namespace braid::net {

struct WidthHeight {
  int width = 0, height = 0;
};

struct EnhancedPrompt {
  std::string prompt = {};
  std::string boxes = {};                  // a JSON array of rows; empty: none
  std::optional<WidthHeight> shape = {};   // 16 and 9, of any size
  std::optional<WidthHeight> pixels = {};  // a size
  std::optional<int> like_picture = {};    // has the shape of this picture, counted from 1
  // Remembers the answer for the same question; for whoever finds that it can be drawn. Maybe
  // empty.
  std::function<void()> keep = {};
};

constexpr std::size_t kLongestEnhanced = 32'000;  // characters of a prompt

// `content`: an answer, maybe with thoughts before it and in a fence of Markdown. A JSON object in
// it counts if it has a `rewritten_prompt` (`rewrited_prompt`, `enhanced_prompt`, `revised_prompt`,
// `prompt`), the last one of several; with it go `wh_ratio` ("16:9"), `ratio_follow` ("<image2>"),
// `size` ("1024x768") and `boxes`. Otherwise all of it is the prompt.
//
// Throws EnhancerFailure for an answer that is empty, too long, no text, unfinished (thoughts or
// JSON without an end), or has fields of other types.
EnhancedPrompt read_enhanced(std::string_view content, int num_pictures);

// A caption around the user's boxes, as FLUX.3's enhancer writes it; `locked` is rows_on_canvas().
// Throws EnhancerFailure as above.
EnhancedPrompt read_laid_out(std::string_view content, const std::string& locked);

}  // namespace braid::net
