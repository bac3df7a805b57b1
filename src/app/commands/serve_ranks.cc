#include "app/commands/serve_ranks.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "comm/fate.h"

namespace braid {
namespace {

const std::string kNothing = "nothing", kEnd = "end";

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

template <class Value>
std::optional<Value> if_any(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<Value>());
}

// What fails on this rank because of another one is that one's to tell.
void draw_along(const Engine& engine, const Request& request) {
  try {
    engine.generate(request, {});
  } catch (const WorldLost&) {
    throw;
  } catch (const std::exception&) {
  }
}

}  // namespace

// A field that is added to Request does not compile here until it is told to the other ranks.
std::string text_of_request(const Request& request) {
  const auto& [prompts, prompts_2, negative, negative_2, true_cfg, rescale, norm_cap, until, width,
               height, steps, guidance, max_length, seed, num_images, batch_size, tiling, latents,
               pictures, adapters] = request;
  require(!latents.has_value(), "initial latents are not served");
  require(pictures.is_empty(), "pictures as input are not served by ranks that are processes");
  require(!adapters.has_value(), "adapters of a request's own are not served");
  const Json all = {prompts,
                    prompts_2,
                    or_null(negative),
                    or_null(negative_2),
                    true_cfg,
                    rescale,
                    norm_cap,
                    until,
                    or_null(width),
                    or_null(height),
                    or_null(steps),
                    or_null(guidance),
                    or_null(max_length),
                    seed,
                    num_images,
                    batch_size,
                    int(tiling)};
  return all.dump();
}

Request request_of_text(const std::string& text) {
  const auto all = Json::parse(text);
  std::size_t next = 0;
  const auto field = [&]() -> const Json& { return all.at(next++); };
  return {.prompts = field().get<std::vector<std::string>>(),
          .prompts_2 = field().get<std::vector<std::string>>(),
          .negative_prompt = if_any<std::string>(field()),
          .negative_prompt_2 = if_any<std::string>(field()),
          .true_cfg = field(),
          .guidance_rescale = field(),
          .cfg_norm_cap = field(),
          .cfg_until = field(),
          .width = if_any<int>(field()),
          .height = if_any<int>(field()),
          .steps = if_any<int>(field()),
          .guidance = if_any<double>(field()),
          .max_sequence_length = if_any<int>(field()),
          .seed = field(),
          .num_images = field(),
          .batch_size = field(),
          .vae_tiling = VaeTiling(field().get<int>())};
}

void announce_request(const Engine& engine, const Request& request) {
  engine.share(text_of_request(request));
}
void announce_nothing(const Engine& engine) { engine.share(kNothing); }
void announce_end(const Engine& engine) { engine.share(kEnd); }

void follow_first_rank(const Engine& engine) {
  for (;;) {
    const auto said = engine.share("");
    if (said == kEnd) return;
    if (said != kNothing) draw_along(engine, request_of_text(said));
  }
}

}  // namespace braid
