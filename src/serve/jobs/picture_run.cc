#include "serve/jobs/picture_run.h"

#include <algorithm>

#include "image/parameters.h"
#include "serve/body/loras.h"

namespace braid::serve {
namespace {

const char* stage_name(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return "load";
    case Phase::kText:
      return "text";
    case Phase::kDenoise:
      return "denoise";
    case Phase::kDecode:
      return "decode";
  }
  return "";
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Hooks PictureRun::hooks(const Backend& backend) {
  Hooks hooks{.progress = [this](const Progress& at) { advance(at); },
              .picture =
                  [this, &backend](Picture& picture) {
                    if (is_laid_on_white(job_.order().form, picture.alpha) && !is_told_of_white_)
                      job_.warn(kLaidOnWhite);
                    is_told_of_white_ = true;
                    auto file = file_of(backend, picture);
                    job_.add({.seed = picture.seed,
                              .width = picture.width,
                              .height = picture.height,
                              .frame = picture.frame,
                              .num_frames = picture.num_frames,
                              .frames_per_second = picture.frames_per_second,
                              .file = std::make_shared<const std::string>(std::move(file))});
                    picture.rgb = picture.alpha = {};  // it is in the file
                  },
              .warning =
                  [this, &backend](const std::string& sentence) {
                    job_.warn(with_lora_names(sentence, request_, backend).text);
                  },
              .stop = job_.stop_token()};
  if (!job_.order().has_previews) return hooks;
  hooks.preview_interval = job_.order().preview_interval;
  hooks.preview = [this](const Preview& preview) {
    auto file = encoded(job_.order().form, preview.width, preview.height, preview.rgb);
    job_.preview(preview.picture, preview.step,
                 std::make_shared<const std::string>(std::move(file)));
  };
  return hooks;
}

std::string PictureRun::file_of(const Backend& backend, const Picture& picture) const {
  const auto& order = job_.order();
  const auto text =
      with_original_prompt(backend.text(picture, request_, order.files), order.original_prompt);
  if (is_text_cut(order.form, text)) job_.warn(kTextCut);
  return encoded(order.form, picture.width, picture.height, picture.rgb, text, picture.alpha);
}

void PictureRun::enter(Phase phase, Clock::time_point now) {
  if (phase_ == phase) return;
  if (phase_) metrics_.stage_took(stage_name(*phase_), seconds_between(entered_, now));
  if (phase_ == Phase::kLoad) seconds_of_load_ += seconds_between(entered_, now);
  phase_ = phase;
  entered_ = now;
}

void PictureRun::advance(const Progress& at) {
  const auto now = Clock::now();
  enter(at.phase, now);
  const bool is_step = at.phase == Phase::kDenoise && at.done > 0;
  if (is_step) {
    const auto seconds = seconds_between(stepped_, now);
    seconds_of_steps_ += seconds;
    metrics_.step_took(seconds);
    step_took_(at.num_pictures, seconds);
  }
  if (at.phase == Phase::kDenoise) stepped_ = now;
  if (at.phase == Phase::kDenoise && at.done == 0) ++rounds_;
  const int steps = request_.steps.value_or(0);
  const int done = at.phase == Phase::kDecode    ? steps
                   : at.phase == Phase::kDenoise ? int(at.done)
                                                 : 0;
  const int first =
      at.phase == Phase::kDenoise || at.phase == Phase::kDecode ? at.first_picture : 0;
  job_.advance(stage_name(at.phase), done, seconds_left_(first, done));
}

double PictureRun::finish() {
  const auto now = Clock::now();
  if (phase_) metrics_.stage_took(stage_name(*phase_), seconds_between(entered_, now));
  return (seconds_between(began_, now) - seconds_of_steps_ - seconds_of_load_) /
         std::max(rounds_, 1);
}

}  // namespace braid::serve
