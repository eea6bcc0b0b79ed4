// The table as a picture: accuracy against bits per weight, one panel a network, as an SVG file.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation.hpp"
#include "schemes.hpp"

namespace fashion {

namespace plot {

inline constexpr double width = 1000, panel_height = 460, left = 70, right = 30, top = 74, below_title = 40, below = 60;

struct box {
  double x0, y0, x1, y1;
  bool overlaps(const box& o) const { return x0 < o.x1 && o.x0 < x1 && y0 < o.y1 && o.y0 < y1; }
};

/// A number with a fixed number of decimals.
inline std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

inline std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

inline std::string text(double x, double y, const std::string& content, const std::string& attributes = "") {
  return "<text x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" " + attributes + ">" + escaped(content) +
         "</text>\n";
}

inline std::string line(double x0, double y0, double x1, double y1, const std::string& attributes) {
  return "<line x1=\"" + fixed(x0, 1) + "\" y1=\"" + fixed(y0, 1) + "\" x2=\"" + fixed(x1, 1) + "\" y2=\"" +
         fixed(y1, 1) + "\" " + attributes + "/>\n";
}

/// Each family has a colour and a shape, so that the picture also reads without colour.
struct look {
  const char *name, *colour, *shape;  // shape: an SVG path around the origin
};
inline const look& look_of(family kind) {
  static constexpr look looks[] = {// in the order of the enumerators
                                   {"float32", "#555555", ""},
                                   {"integers", "#1f6fb4", "M-4.5-4.5h9v9h-9z"},
                                   {"small floats, float scales", "#d9601a", "M0-6l5.5 10.5h-11z"},
                                   {"OCP microscaling (MX)", "#2a8c4a", "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z"},
                                   {"another scheme per layer", "#7b4fa3", "M0-6.5l6.5 6.5-6.5 6.5-6.5-6.5z"}};
  return looks[static_cast<std::size_t>(kind)];
}

inline std::string marker(family kind, double x, double y) {
  return "<path transform=\"translate(" + fixed(x, 1) + " " + fixed(y, 1) + ")\" d=\"" + look_of(kind).shape +
         "\" fill=\"" + look_of(kind).colour + "\" fill-opacity=\"0.8\" stroke=\"white\"/>\n";
}

/// A labelled point in pixels.
struct point {
  std::string label;
  family kind;
  double x, y;
};

/// Where a label goes, and the end of its text that is next to its point.
struct place {
  box area;
  bool is_left;
  double cost;  // distance from the point in pixels; far more where it covers something or leaves the frame
};

/// The cheapest of places to the left and right of p at several distances, above and below.
inline place best_place(const point& p, const std::vector<box>& taken, const box& frame) {
  constexpr double height = 12, letter = 6.7, sideways[] = {9, 27, 54};
  const double length = letter * double(p.label.size());
  place best{{}, false, std::numeric_limits<double>::infinity()};
  for (int candidate = 0; candidate < 29 * 6; ++candidate) {
    const bool is_left = candidate % 2;
    const double dx = sideways[candidate / 2 % 3];
    const int step = candidate / 6;  // 0, 1 up, 1 down, 2 up, ...
    const double dy = 9 * ((step + 1) / 2) * (step % 2 ? -1 : 1);
    const double x0 = is_left ? p.x - dx - length : p.x + dx;
    const box area{x0, p.y + dy - height / 2, x0 + length, p.y + dy + height / 2};
    const bool outside = area.x0 < frame.x0 || area.x1 > frame.x1 || area.y0 < frame.y0 || area.y1 > frame.y1;
    const auto covered = std::count_if(taken.begin(), taken.end(), [&](const box& b) { return b.overlaps(area); });
    const double cost = std::abs(dy) + dx + 2 * is_left + 1e3 * double(covered) + 1e6 * outside;
    if (cost < best.cost) best = {area, is_left, cost};
  }
  return best;
}

/// A label for each point, clear of the other labels and of all points; a thin line leads to one that had to move away.
inline std::string labels(const std::vector<point>& points, const box& frame) {
  std::vector<box> taken;
  for (const point& p : points) taken.push_back({p.x - 7, p.y - 6, p.x + 7, p.y + 6});

  std::string lines, texts;
  for (const point& p : points) {
    const place to = best_place(p, taken, frame);
    taken.push_back(to.area);
    const double x = to.is_left ? to.area.x1 : to.area.x0, y = (to.area.y0 + to.area.y1) / 2;
    const std::string ink = look_of(p.kind).colour;
    if (to.cost > 20 && p.kind != family::floats)
      lines += line(p.x, p.y, x, y, "stroke=\"" + ink + "\" stroke-width=\"0.6\"");
    texts += text(x, y + 4, p.label,
                  "font-size=\"11\" fill=\"" + ink + "\" stroke=\"white\" stroke-width=\"3\" " +
                      "paint-order=\"stroke\" text-anchor=\"" + (to.is_left ? "end" : "start") + "\"");
  }
  return lines + texts;
}

/// One network: axes, the float baseline as a dashed line in a band of one standard error, the points.
inline std::string panel(const std::vector<result>& rows, double panel_top) {
  const auto baseline =
      std::find_if(rows.begin(), rows.end(), [](const result& r) { return r.kind == family::floats; });
  const double margin = 1.3 * baseline->standard_error;
  double low = baseline->accuracy - 2 * margin, high = baseline->accuracy + margin, least_bits = 8, most_bits = 8;
  for (const result& r : rows) {
    if (r.kind == family::floats) continue;
    least_bits = std::min(least_bits, r.bits);
    most_bits = std::max(most_bits, r.bits);
    high = std::max(high, r.accuracy);
    if (r.accuracy > baseline->accuracy - 4) low = std::min(low, r.accuracy);  // what lies deeper sits on the frame
  }
  const double tick = high - low > 2 ? 0.5 : 0.2, first_bit = std::floor(least_bits),
               last_bit = std::ceil(most_bits) + 1;
  low = std::floor(low / tick - 0.5) * tick, high = std::ceil(high / tick + 0.2) * tick;

  const box frame{left, panel_top + below_title, width - right, panel_top + panel_height - below};
  const auto x_of = [&](double bits) {
    return frame.x0 + (frame.x1 - frame.x0) * (bits - first_bit) / (last_bit - first_bit);
  };
  const auto y_of = [&](double accuracy) {
    return frame.y1 - (frame.y1 - frame.y0) * (std::max(accuracy, low) - low) / (high - low);
  };

  const double base = y_of(baseline->accuracy), error = base - y_of(baseline->accuracy + baseline->standard_error);
  std::string svg = text(left, panel_top + 24, rows.front().network, "font-size=\"16\" font-weight=\"bold\"") +
                    "<rect x=\"" + fixed(frame.x0, 1) + "\" y=\"" + fixed(base - error, 1) + "\" width=\"" +
                    fixed(frame.x1 - frame.x0, 1) + "\" height=\"" + fixed(2 * error, 1) + "\" fill=\"#f2f2f2\"/>\n";
  for (double a = low; a < high + tick / 2; a += tick) {
    svg += line(frame.x0, y_of(a), frame.x1, y_of(a), "stroke=\"#e4e4e4\"");
    svg += text(frame.x0 - 8, y_of(a) + 4, fixed(a, 1), "font-size=\"12\" text-anchor=\"end\"");
  }
  for (double b = first_bit; b <= last_bit; ++b) {
    svg += line(x_of(b), frame.y0, x_of(b), frame.y1, "stroke=\"#e4e4e4\"");
    svg += text(x_of(b), frame.y1 + 18, fixed(b, 0), "font-size=\"12\" text-anchor=\"middle\"");
  }
  const double middle = (frame.y0 + frame.y1) / 2;
  svg += text((frame.x0 + frame.x1) / 2, frame.y1 + 40, "bits per weight, scales included",
              "font-size=\"13\" text-anchor=\"middle\"");
  svg += text(22, middle, "accuracy on the test images, %",
              "font-size=\"13\" text-anchor=\"middle\" transform=\"rotate(-90 22 " + fixed(middle, 1) + ")\"");

  svg += line(frame.x0, base, frame.x1, base, "stroke=\"#555555\" stroke-dasharray=\"6 4\"");
  std::vector<point> points;
  points.push_back({"float32, " + fixed(baseline->bits, 0) + " bits: " + fixed(baseline->accuracy, 2) +
                        " % (grey: one standard error)",
                    family::floats, frame.x0, base - 9});
  for (const result& r : rows) {
    if (r.kind == family::floats) continue;
    const bool deep = r.accuracy < low;
    points.push_back({deep ? r.scheme + ": " + fixed(r.accuracy, 1) + " %, below the frame" : r.scheme, r.kind,
                      x_of(r.bits), deep ? frame.y1 : y_of(r.accuracy)});
  }
  std::sort(points.begin(), points.end(), [](const point& a, const point& b) { return a.y < b.y; });
  for (const point& p : points)
    if (p.kind != family::floats) svg += marker(p.kind, p.x, p.y);
  return svg + labels(points, frame);
}

}  // namespace plot

/// Writes the picture. `rows` are grouped by network; each network has its float32 row.
inline void write_plot(const std::filesystem::path& file, const std::vector<result>& rows) {
  std::vector<std::vector<result>> networks;
  for (const result& r : rows) {
    if (networks.empty() || networks.back().front().network != r.network) networks.emplace_back();
    networks.back().push_back(r);
  }

  const double height = plot::top + plot::panel_height * double(networks.size());
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + plot::fixed(plot::width, 0) + " " +
      plot::fixed(height, 0) + "\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"#222222\">\n" +
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
      plot::text(plot::left, 32, "Fashion-MNIST with quantized weights", "font-size=\"20\" font-weight=\"bold\"");
  double x = plot::left;
  for (family kind : {family::integer, family::minifloat, family::microscaling, family::mixed}) {
    const std::string name = plot::look_of(kind).name;
    svg += plot::marker(kind, x + 6, 56) + plot::text(x + 18, 60, name, "font-size=\"13\"");
    x += 50 + 7 * double(name.size());
  }
  for (std::size_t i = 0; i < networks.size(); ++i)
    svg += plot::panel(networks[i], plot::top + plot::panel_height * double(i));

  std::ofstream out(file);
  if (!(out << svg << "</svg>\n").flush()) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace fashion
