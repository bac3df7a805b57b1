// How many tokens prompts have, for pages that show it while they are typed.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "serve/api/api.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

struct CountedPrompt {
  std::string text, second, negative;
  int max_sequence_length = 0;
};

Json counts_json(const ApiContext& context, const Backend& backend, const std::string& text,
                 const std::string& second, int max_sequence_length, const std::string& param) {
  auto json = Json::array();
  try {
    for (const auto& one : backend.count_tokens(text, second, max_sequence_length))
      json.push_back({{"encoder", one.encoder},
                      {"tokens", one.tokens},
                      {"limit", one.limit},
                      {"cut", one.cut}});
  } catch (const LoadFailed& failure) {
    ApiError error(500, context.service.told_of(failure, backend), "model_not_loaded");
    error.is_last_word = true;
    throw error;
  } catch (const InputError& error) {
    refuse(param, error.what());
  }
  return json;
}

// The first count of a model reads its tokenizers, so this is done beside the reading of requests.
Answer count_tokens(const ApiContext& context, const HttpRequest& http,
                    const std::vector<std::string>&) {
  auto fields = fields_of(http, context);
  const auto& backend = read_model(fields, context.service.backends());
  if (!backend.count_tokens)
    throw ApiError(404, "this model's tokens cannot be counted", "not_found");
  const auto& info = backend.info;
  CountedPrompt counted{
      .text = fields.text("prompt", kLongestPrompt).value_or(""),
      .second = fields.text("prompt_2", kLongestPrompt).value_or(""),
      .negative = fields.text("negative_prompt", kLongestPrompt).value_or(""),
      .max_sequence_length = int(fields.integer({"max_sequence_length"}, 1, info.max_text_tokens)
                                     .value_or(info.max_sequence_length))};
  fields.finish();
  return {.rest = [&context, &backend, counted = std::move(counted)]() -> Answer {
    const auto counts = [&](const std::string& text, const std::string& second,
                            const std::string& param) {
      return counts_json(context, backend, text, second, counted.max_sequence_length, param);
    };
    return json_answer({{"prompt", counts(counted.text, counted.second, "prompt")},
                        {"negative_prompt", counts(counted.negative, "", "negative_prompt")}});
  }};
}

}  // namespace

std::vector<Route> tokens_routes() { return {{"POST", "/v1/tokens", count_tokens}}; }

}  // namespace braid::serve
