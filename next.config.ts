import type { NextConfig } from "next";

const config: NextConfig = {
  // These load parts of themselves at run time, which bundling breaks; Node resolves them instead.
  serverExternalPackages: ["snaptrade-typescript-sdk", "pino", "undici"],
  poweredByHeader: false,
  experimental: { agentUpgrade: false },
  async headers() {
    return [
      {
        source: "/:path*",
        headers: [
          { key: "X-Content-Type-Options", value: "nosniff" },
          { key: "X-Frame-Options", value: "DENY" },
          { key: "Referrer-Policy", value: "no-referrer" },
          { key: "Content-Security-Policy", value: "default-src 'none'; frame-ancestors 'none'" },
          { key: "Strict-Transport-Security", value: "max-age=63072000; includeSubDomains" },
        ],
      },
    ];
  },
};

export default config;
