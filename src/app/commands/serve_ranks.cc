#include "app/commands/serve_ranks.h"

#include <nlohmann/json.hpp>

#include "app/machine/launched.h"
#include "base/error.h"
#include "base/json.h"

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

Json adapters_json(const std::vector<Adapter>& adapters) {
  auto json = Json::array();
  for (const auto& [file, scale] : adapters) json.push_back({file.string(), scale});
  return json;
}

std::optional<std::vector<Adapter>> adapters_of(const Json& json) {
  if (json.is_null()) return {};
  std::vector<Adapter> adapters;
  for (const auto& one : json) adapters.push_back({one.at(0).get<std::string>(), one.at(1)});
  return adapters;
}

Json size_json(const Pixels& picture) {
  return Json::array({picture.width, picture.height, picture.channels()});
}
Json size_json(const std::optional<Pixels>& picture) {
  return picture ? size_json(*picture) : Json();
}

Json control_json(const ControlPicture& control) {
  const auto& [picture, scale, from, to, mode] = control;
  return {size_json(picture), scale, from, to, or_null(mode)};
}

// The description of the pictures; `bytes` receives their pixels.
Json take_apart(const PicturesIn& pictures, std::string& bytes) {
  const auto& [init, strength, mask, blur, crop, references, scales, cache, resolution, controls] =
      pictures;
  const auto add = [&](const Pixels& one) {
    bytes.append(one.rgb.begin(), one.rgb.end());
    bytes.append(one.alpha.begin(), one.alpha.end());
  };
  for (const auto* const one : {&init, &mask})
    if (*one) add(**one);
  auto sizes = Json::array(), followed = Json::array();
  for (const auto& one : references) {
    add(one);
    sizes.push_back(size_json(one));
  }
  for (const auto& one : controls) {
    add(one.picture);
    followed.push_back(control_json(one));
  }
  return {{"init", size_json(init)},           {"mask", size_json(mask)},
          {"strength", or_null(strength)},     {"mask_blur", blur},
          {"padding_crop", or_null(crop)},     {"references", sizes},
          {"reference_scales", scales},        {"reference_cache", int(cache)},
          {"resolution", or_null(resolution)}, {"controls", followed}};
}

PicturesIn put_together(const Json& told, std::string_view bytes) {
  const auto take = [&](const Json& size) {
    const auto values = [&](std::size_t count) {
      const std::vector<std::uint8_t> taken(bytes.begin(), bytes.begin() + std::ptrdiff_t(count));
      bytes.remove_prefix(count);
      return taken;
    };
    Pixels picture{.width = size.at(0), .height = size.at(1), .rgb = {}};
    const auto pixels = std::size_t(picture.width) * std::size_t(picture.height);
    picture.rgb = values(pixels * 3);
    if (size.at(2) == 4) picture.alpha = values(pixels);
    return picture;
  };
  const auto take_any = [&](const Json& size) {
    return size.is_null() ? std::nullopt : std::optional(take(size));
  };
  PicturesIn pictures;
  pictures.init = take_any(told.at("init"));
  pictures.mask = take_any(told.at("mask"));
  pictures.strength = if_any<double>(told.at("strength"));
  pictures.mask_blur = told.at("mask_blur");
  pictures.padding_crop = if_any<int>(told.at("padding_crop"));
  for (const auto& size : told.at("references")) pictures.references.push_back(take(size));
  pictures.reference_scales = told.at("reference_scales").get<std::vector<double>>();
  pictures.reference_cache = ReferenceCache(told.at("reference_cache").get<int>());
  pictures.resolution = if_any<int>(told.at("resolution"));
  for (const auto& one : told.at("controls"))
    pictures.controls.push_back({.picture = take(one.at(0)),
                                 .scale = one.at(1),
                                 .from = one.at(2),
                                 .to = one.at(3),
                                 .mode = if_any<int>(one.at(4))});
  return pictures;
}

Json sampling_json(const Sampling& sampling) {
  const auto& [sampler, schedule, sigmas, base_sigmas, shift] = sampling;
  return {sampler ? Json(int(*sampler)) : Json(), schedule ? Json(int(*schedule)) : Json(), sigmas,
          base_sigmas, or_null(shift)};
}

Sampling sampling_of(const Json& json) {
  Sampling s{.sigmas = json.at(2).get<std::vector<double>>(),
             .base_sigmas = json.at(3).get<std::vector<double>>(),
             .shift = if_any<double>(json.at(4))};
  if (!json.at(0).is_null()) s.sampler = Sampler(json.at(0).get<int>());
  if (!json.at(1).is_null()) s.schedule = SigmaSchedule(json.at(1).get<int>());
  return s;
}

// The first rank calls generate(), whatever this one makes of its words.
void draw_along(const Engine& engine, const std::string& said) {
  std::optional<Request> request;
  std::exception_ptr failure;
  try {
    request = request_of_bytes(said);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!request) engine.fail_generate(failure);
  engine.generate(*request, {});
}

// Returns false at the end.
bool follow_once(const Engine& engine) {
  const auto said = engine.share("");
  if (said == kEnd) return false;
  if (said != kNothing) draw_along(engine, said);
  return true;
}

}  // namespace

// A field added to Request does not compile here until it is sent to the other ranks.
std::string bytes_of_request(const Request& request) {
  const auto& [prompts, prompts_2, negative, negative_2, boxes, true_cfg, rescale, norm_cap,
               normalize, until, width, height, frames, layers, steps, sampling, guidance,
               max_length, seed, num_images, batch_size, tiling, latents, output, pictures,
               adapters] = request;
  require(!latents.has_value(), "initial latents are not served");
  std::string pixels;
  const Json all = {prompts,
                    prompts_2,
                    or_null(negative),
                    or_null(negative_2),
                    boxes,
                    true_cfg,
                    rescale,
                    norm_cap,
                    or_null(normalize),
                    until,
                    or_null(width),
                    or_null(height),
                    or_null(frames),
                    or_null(layers),
                    or_null(steps),
                    sampling_json(sampling),
                    or_null(guidance),
                    or_null(max_length),
                    seed,
                    num_images,
                    batch_size,
                    int(tiling),
                    int(output),
                    take_apart(pictures, pixels),
                    adapters ? adapters_json(*adapters) : Json()};
  return all.dump() + '\n' + pixels;
}

Request request_of_bytes(const std::string& bytes) try {
  const auto line = bytes.find('\n');
  const auto all = Json::parse(bytes.substr(0, line));
  std::size_t next = 0;
  const auto field = [&]() -> const Json& { return all.at(next++); };
  return {.prompts = field().get<std::vector<std::string>>(),
          .prompts_2 = field().get<std::vector<std::string>>(),
          .negative_prompt = if_any<std::string>(field()),
          .negative_prompt_2 = if_any<std::string>(field()),
          .boxes = field(),
          .true_cfg = field(),
          .guidance_rescale = field(),
          .cfg_norm_cap = field(),
          .cfg_normalize = if_any<bool>(field()),
          .cfg_until = field(),
          .width = if_any<int>(field()),
          .height = if_any<int>(field()),
          .frames = if_any<int>(field()),
          .layers = if_any<int>(field()),
          .steps = if_any<int>(field()),
          .sampling = sampling_of(field()),
          .guidance = if_any<double>(field()),
          .max_sequence_length = if_any<int>(field()),
          .seed = field(),
          .num_images = field(),
          .batch_size = field(),
          .vae_tiling = VaeTiling(field().get<int>()),
          .latents = {},
          .output = Output(field().get<int>()),
          .pictures = put_together(field(), std::string_view(bytes).substr(line + 1)),
          .adapters = adapters_of(field())};
} catch (const Json::exception& fault) {
  throw Error(text_of("the first rank should announce a request in the form of braid serve, and ",
                      "said something else: ", fault.what()));
}

void announce_request(const Engine& engine, const Request& request) {
  engine.share(bytes_of_request(request));
}
void announce_nothing(const Engine& engine) { engine.share(kNothing); }
void announce_end(const Engine& engine) { engine.share(kEnd); }

// All ranks leave a failed run together, and the first one tells its client. A lost world is told
// by each rank, in the log of its own machine.
void follow_first_rank(const Engine& engine) {
  for (bool goes_on = true; goes_on;) {
    try {
      goes_on = follow_once(engine);
    } catch (...) {
      const auto loss = engine.loss();
      if (!loss) continue;
      let_first_rank_end();
      throw Error(*loss);
    }
  }
}

}  // namespace braid
