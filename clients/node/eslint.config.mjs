import tseslint from "typescript-eslint";

const fromRunner = ["describe", "it", "before", "after"].map((name) => ({ from: "package", name, package: "node:test" }));

export default tseslint.config(
  { ignores: ["dist/", "dist-tests/", "node_modules/", "packages/"] },
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
    },
  },
  { files: ["**/*.mjs"], extends: [tseslint.configs.disableTypeChecked] },
  {
    files: ["tests/**"],
    rules: {
      // The runner waits for these.
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: fromRunner }],
    },
  },
);
